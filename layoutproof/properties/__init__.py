"""Properties: one file each, the file's name is the property's name, its docstring is its page (`explain NAME`).

A property module has
    LAYOUTS                      how many layouts it speaks of
    claims(*maps, **options)     the claims that together are the property (see core.claim); LayoutError for maps it
                                 cannot speak of and for options without a meaning. Parameters with a default are the
                                 options: spec files and the command line read them from here
and may have
    figures(*maps, **options)    exact numbers that belong to the answer
"""
