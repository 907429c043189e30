// Keeps the files of one build. `BUILD` and `FILES` are written by build.py: another build has another name.
const BUILD = "layoutproof-@BUILD@";
const FILES = ["./", ...@FILES@];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(BUILD).then((kept) => kept.addAll(FILES)).then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => {
  const old = (names) => names.filter((name) => name.startsWith("layoutproof-") && name !== BUILD);
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(old(names).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});
self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== location.origin) return;
  event.respondWith(
    caches.open(BUILD).then(async (kept) => (await kept.match(event.request, { ignoreSearch: true })) ?? fetch(event.request)),
  );
});
