// Python in a worker, so that drawing and typing go on while the model computes.
const CDN = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/";
const LOCAL = new URL("pyodide/", self.location.href).href;

let page;

async function pyodideFolder() {
  // a copy beside the page needs no network
  const found = await fetch(LOCAL + "pyodide-lock.json").catch(() => null);
  return found?.ok ? LOCAL : CDN;
}

async function fetched(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return response;
}

async function start() {
  const began = performance.now();
  const say = (stage) => postMessage({ kind: "stage", stage });
  say("Loading Python");
  const folder = await pyodideFolder();
  const { loadPyodide } = await import(folder + "pyodide.mjs");
  const [pyodide, files, app] = await Promise.all([
    loadPyodide({ indexURL: folder }),
    fetched("model.zip").then((response) => response.arrayBuffer()),
    fetched("app.py").then((response) => response.text()),
  ]);
  say("Loading NumPy");
  await pyodide.loadPackage("numpy", { messageCallback: () => {} });
  say("Loading the model");
  pyodide.unpackArchive(files, "zip", { extractDir: "/home/pyodide" });
  pyodide.FS.writeFile("/home/pyodide/app.py", app);
  page = pyodide.pyimport("page");
  const seconds = (performance.now() - began) / 1000;
  postMessage({ kind: "ready", about: page.about(), seconds });
}

function answer({ inputs, sizes }) {
  const began = performance.now();
  const { outputs, ...error } = JSON.parse(page.answer(inputs, sizes));
  if (!outputs) return postMessage({ kind: "error", ...error });
  postMessage({ kind: "answer", outputs, milliseconds: performance.now() - began });
}

function failed(error) {
  const lines = String(error.message ?? error).trim().split("\n");
  postMessage({ kind: "error", message: lines.at(-1), details: lines.join("\n") });
}

const started = start().catch((error) => {
  failed(error);
  throw error;
});

self.onmessage = async (event) => {
  try {
    await started;
  } catch {
    return; // reported already
  }
  try {
    answer(event.data);
  } catch (error) {
    failed(error);
  }
};
