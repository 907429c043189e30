// Python and the package, beside the page: a long question leaves the page alive, and can be stopped.
import { loadPyodide } from "./pyodide.mjs";

const ready = (async () => {
  const python = await loadPyodide({ indexURL: new URL("./", import.meta.url).href });
  const [wheel, answers] = await Promise.all([
    fetch("./layoutproof.zip").then((found) => found.arrayBuffer()),
    fetch("./answers.py").then((found) => found.text()),
  ]);
  python.unpackArchive(wheel, "zip", { extractDir: "/lib/layoutproof" });
  python.FS.writeFile("/lib/layoutproof/answers.py", answers);
  python.runPython("import sys; sys.path.insert(0, '/lib/layoutproof')");
  return python.runPython("from answers import answer; answer");
})();

ready.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ failed: String(error) }),
);

onmessage = async ({ data }) => {
  const answer = await ready;
  const start = performance.now();
  let found;
  try {
    found = JSON.parse(answer(JSON.stringify(data.request)));
  } catch (error) {
    // the interpreter itself gave up: memory, or its stack
    postMessage({ id: data.id, failed: String(error).split("\n").slice(-2).join(" ") });
    return;
  }
  postMessage({ id: data.id, found, ms: performance.now() - start });
};
