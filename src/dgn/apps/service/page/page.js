// The page: from the form to the service, and from its answer to the screen.

import { linkOf, stateOf } from "/page/link.js";
import { drawPicture } from "/page/picture.js";
import { certificateText, named, percent, whyNot, whyTaken } from "/page/reasons.js";

const MOST_BARS = 40;
const PLAY_MS = 1300;
const COLOURS = 5;
const LARGEST_FILE = 2 ** 21;

const at = (id) => document.getElementById(id);
const made = (tag, className = "", text = "") => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.textContent = text;
  return node;
};

let samples = [];
let answer = null; // the request, what /v1/explain and /v1/compare answered, and all sentences
let round = 1;
let pressed = null; // the sentence whose reason is shown
let playing = null;

// --- the form ---------------------------------------------------------------------------------

function formState() {
  return {
    query: at("query").value,
    text: at("text").value,
    unit: document.querySelector("input[name=unit]:checked").value,
    k: at("k").value,
    max_tokens: at("max-tokens").value,
  };
}

function fillForm(state) {
  at("query").value = state.query;
  at("text").value = state.text;
  at("k").value = state.k ?? "3";
  at("max-tokens").value = state.max_tokens ?? "";
  const unit = state.unit === "passages" ? "passages" : "documents";
  document.querySelector(`input[name=unit][value=${unit}]`).checked = true;
}

// Lines that begin with "#" are titles; each begins a new document.
function parts(text) {
  const found = [{ title: "", lines: [] }];
  for (const line of text.split(/\r?\n/)) {
    if (/^#+\s/.test(line)) found.push({ title: line.replace(/^#+\s+/, "").trim(), lines: [] });
    else found.at(-1).lines.push(line);
  }
  return found.filter((one) => one.lines.some((line) => line.trim()));
}

function requestOf(state) {
  const request = { query: state.query.trim() };
  if (state.unit === "passages") {
    request.passages = parts(state.text).flatMap(({ title, lines }) =>
      lines.filter((line) => line.trim()).map((line) => ({ text: line.trim(), title })));
  } else {
    request.documents = parts(state.text).map(({ title, lines }) => ({ title, text: lines.join("\n") }));
  }
  if (state.k) request.k = Number(state.k);
  if (state.max_tokens) request.max_tokens = Number(state.max_tokens);
  return request;
}

// The service names the field of its API; people see another name on the form.
const FIELDS = { query: "The query", k: "Sentences (k)", max_tokens: "The token limit" };

function plain(detail) {
  return detail.replace(/^\/(\w+)\S*: (it )?/, (_, field) => `${FIELDS[field] ?? "The text"}: `);
}

async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const token = at("token").value || sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  } catch {
    throw new Error("The service does not answer. Is dgn serve still running?");
  }
  const content = await response.json();
  if (response.status === 401) at("token-field").hidden = false;
  if (!response.ok) throw new Error(content.detail);
  if (token) sessionStorage.setItem("token", token);
  return content;
}

async function select(event) {
  event?.preventDefault();
  stopPlaying();
  const state = formState();
  at("error").textContent = "";
  if (!state.query.trim() || !parts(state.text).length) {
    at("error").textContent = state.query.trim() ? "Paste some text first." : "Write a query first.";
    return;
  }
  at("select").disabled = true;
  try {
    const request = requestOf(state);
    const [explained, compared] = await Promise.all([
      post("/v1/explain", request), post("/v1/compare", request)]);
    history.replaceState(null, "", await linkOf(state));
    show({ state, request, ...explained, methods: compared.methods });
    at("results").focus({ preventScroll: true });
    if (matchMedia("(max-width: 60rem)").matches) at("results").scrollIntoView();
  } catch (error) {
    // The old answer does not belong to this query.
    at("answer").hidden = true;
    at("empty").hidden = false;
    at("error").textContent = plain(error.message);
  } finally {
    at("select").disabled = false;
  }
}

async function addFiles(files) {
  const texts = [];
  for (const file of files) {
    if (file.size > LARGEST_FILE) {
      at("error").textContent = `${file.name} is larger than 2 MiB.`;
      return;
    }
    const title = file.name.replace(/\.(txt|text|md)$/i, "").replaceAll("_", " ");
    texts.push(`# ${title}\n${(await file.text()).trim()}`);
  }
  const before = at("text").value.trim();
  at("text").value = [...(before ? [before] : []), ...texts].join("\n\n");
  at("sample").value = "";
}

// --- the answer -------------------------------------------------------------------------------

function show(found) {
  answer = found;
  const { selected, passed } = found.explanation;
  answer.sentences = [...selected, ...passed].sort((a, b) => a.index - b.index);
  answer.order = new Map(selected.map((one, place) => [one.index, place + 1]));
  pressed = null;
  at("reason").replaceChildren();
  at("done").textContent = "";
  at("empty").hidden = true;
  at("answer").hidden = false;
  at("round").max = Math.max(1, selected.length);
  showWords();
  showDocument();
  showGains();
  showMethods();
  at("certificate").textContent = certificateText(found.explanation);
  showRound(Math.max(1, selected.length));
}

function showWords() {
  const words = answer.explanation.words.map(({ word, is_content }) => {
    const node = made("span", is_content ? "word" : "word small", word);
    node.dataset.word = word;
    return node;
  });
  at("words").replaceChildren(...words);
}

function showDocument() {
  const documents = new Map();
  for (const one of answer.sentences) {
    const key = one.passage.document ?? `passages ${one.passage.title}`;
    if (!documents.has(key)) documents.set(key, []);
    documents.get(key).push(one);
  }
  const nodes = [...documents.values()].map((sentences) => {
    const { title, document } = sentences[0].passage;
    const node = made("div", document === null ? "document passages" : "document");
    if (title) node.append(made("h3", "", title));
    for (const one of sentences) {
      const button = made("button", "sentence", one.passage.text);
      button.type = "button";
      button.dataset.index = one.index;
      button.addEventListener("click", () => press(one.index));
      for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => light(one.index));
      for (const event of ["mouseleave", "blur"]) button.addEventListener(event, () => light(null));
      node.append(button, " ");
    }
    return node;
  });
  at("document").replaceChildren(...nodes);
}

function showGains() {
  const { selected, passed } = answer.explanation;
  const all = [...selected, ...passed].sort((a, b) => (b.gains[0] ?? 0) - (a.gains[0] ?? 0));
  const kept = all.filter((one, place) => place < MOST_BARS || answer.order.has(one.index));
  const nodes = kept.map((one) => {
    const node = made("li");
    node.dataset.index = one.index;
    const track = made("div", "track");
    track.append(made("div", "bar"));
    node.append(made("span", "name", one.passage.text), track, made("span", "value"));
    return node;
  });
  at("gains").replaceChildren(...nodes);
  const more = all.length - kept.length;
  at("more-gains").textContent = more ? `${more} more sentences with smaller gains are not shown.` : "";
}

function showMethods() {
  const own = new Set(answer.methods[0].indices);
  const nodes = answer.methods.map(({ method, description, indices, coverage }) => {
    const node = made("div", "method");
    const share = coverage === null ? "" : ` · ${percent(coverage)} covered`;
    node.append(made("h3", "", `${method}${share}`), made("p", "help", description));
    const list = made("ol");
    for (const index of indices) {
      const text = answer.sentences.find((one) => one.index === index).passage.text;
      list.append(made("li", own.has(index) ? "also" : "", text));
    }
    node.append(list);
    return node;
  });
  at("methods").replaceChildren(...nodes);
}

function showRound(number) {
  const { selected, words } = answer.explanation;
  round = Math.min(Math.max(1, number), Math.max(1, selected.length));
  at("round").value = round;
  const taken = selected[round - 1];
  at("round-text").textContent = taken
    ? `${round} of ${selected.length}` : "nothing was selected";
  [...at("words").children].forEach((node, place) => {
    const share = words[place].covered[taken ? round : 0] ?? 0;
    node.style.setProperty("--share", `${100 * share}%`);
    node.title = `${words[place].word}: ${percent(share)} covered`;
  });
  const open = words.filter((one) => one.is_content && (one.covered[taken ? round : 0] ?? 0) < 0.5);
  const isNothing = (selected.at(-1)?.covered ?? 0) < 0.01;
  at("covered").textContent = (isNothing ? "The text does not mention the query; these picks mean little. " : "")
    + `${percent(taken?.covered ?? 0)} of the query is covered after round ${round}. `
    + (open.length ? `Covered less than half: ${open.map((one) => one.word).join(", ")}.` : "");
  for (const button of document.querySelectorAll(".sentence")) {
    const place = answer.order.get(Number(button.dataset.index)) ?? 0;
    const isTaken = place > 0 && place <= round;
    button.className = isTaken ? `sentence pick-${((place - 1) % COLOURS) + 1}` : "sentence";
    button.querySelector(".badge")?.remove();
    if (isTaken) button.prepend(made("span", "badge", `${place}`));
    button.setAttribute("aria-pressed", String(pressed === Number(button.dataset.index)));
  }
  showBars();
}

function showBars() {
  const most = Math.max(1e-9, ...answer.sentences.map((one) => one.gains[0] ?? 0));
  for (const node of at("gains").children) {
    const index = Number(node.dataset.index);
    const one = answer.sentences.find((sentence) => sentence.index === index);
    const place = answer.order.get(index) ?? Infinity;
    const gain = place < round ? 0 : one.gains[round - 1] ?? 0;
    node.className = place < round ? "gone" : place === round ? "now" : "";
    node.querySelector(".bar").style.width = `${Math.max(0, 100 * gain / most)}%`;
    node.querySelector(".value").textContent = place < round ? `pick ${place}` : gain.toFixed(2);
  }
}

function press(index) {
  pressed = pressed === index ? null : index;
  const lines = pressed === null ? [] : reasonOf(index);
  at("reason").replaceChildren(...lines.map((line, place) => {
    const node = made("p", "", place ? line : "");
    if (!place) node.append(made("strong", "", named(index, answer.explanation)), ` ${line}`);
    return node;
  }));
  showRound(round);
  at("reason").scrollIntoView({ block: "nearest" });
}

function reasonOf(index) {
  const place = answer.order.get(index);
  const { explanation } = answer;
  return place ? whyTaken(explanation.selected[place - 1], place, explanation)
    : whyNot(explanation.passed.find((one) => one.index === index), explanation);
}

// Hovering over a pick shows the words of the query that it covers.
function light(index) {
  const place = index === null ? undefined : answer.order.get(index);
  const covers = place ? answer.explanation.selected[place - 1].covers : [];
  const words = new Set(covers.map((one) => one.word));
  for (const node of at("words").children) node.classList.toggle("lit", words.has(node.dataset.word));
  const button = document.querySelector(`.sentence[data-index="${index}"]`);
  if (button && place) button.title = `covers ${[...words].join(", ") || "no further word"}`;
}

function stopPlaying() {
  clearInterval(playing);
  playing = null;
  at("play").textContent = "Play";
  at("play").setAttribute("aria-label", "Play the rounds");
}

function play() {
  if (playing !== null) return stopPlaying();
  const last = answer.explanation.selected.length;
  showRound(round >= last ? 1 : round + 1);
  at("play").textContent = "Pause";
  at("play").setAttribute("aria-label", "Pause");
  playing = setInterval(() => {
    if (round >= last) stopPlaying();
    else showRound(round + 1);
  }, PLAY_MS);
}

function step(number) {
  stopPlaying();
  showRound(number);
}

// --- export -----------------------------------------------------------------------------------

function save(blob, name) {
  const link = made("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  at("done").textContent = `Saved ${name}.`;
}

async function copyLink() {
  const link = await linkOf(answer.state);
  try {
    await navigator.clipboard.writeText(link);
    at("done").textContent = "The link was copied; it contains the whole text.";
  } catch {
    location.hash = new URL(link).hash;
    at("done").textContent = "The address of this page is the link; it contains the whole text.";
  }
}

function saveJson() {
  const { request, selection, explanation, methods, text } = answer;
  const content = JSON.stringify({ request, selection, explanation, methods, text }, null, 2);
  save(new Blob([content], { type: "application/json" }), "selection.json");
}

// --- wiring -----------------------------------------------------------------------------------

at("form").addEventListener("submit", select);
at("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) select(event);
});
at("sample").addEventListener("change", () => {
  const sample = samples[Number(at("sample").value)];
  if (at("sample").value && sample) {
    fillForm(sample);
    select();
  }
});
at("files").addEventListener("change", () => addFiles(at("files").files));
for (const kind of ["dragover", "dragleave", "drop"]) {
  at("text").addEventListener(kind, (event) => {
    at("text").classList.toggle("over", kind === "dragover");
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (kind === "drop") addFiles(event.dataTransfer.files);
  });
}
at("first").addEventListener("click", () => step(1));
at("back").addEventListener("click", () => step(round - 1));
at("forward").addEventListener("click", () => step(round + 1));
at("last").addEventListener("click", () => step(answer.explanation.selected.length));
at("round").addEventListener("input", () => step(Number(at("round").value)));
at("play").addEventListener("click", play);
at("copy-link").addEventListener("click", copyLink);
at("save-json").addEventListener("click", saveJson);
at("save-png").addEventListener("click", async () => save(await drawPicture(answer), "selection.png"));

samples = await (await fetch("/page/samples.json")).json();
samples.forEach((sample, place) => {
  const option = made("option", "", sample.name);
  option.value = place;
  at("sample").append(option);
});
const linked = await stateOf(location.hash);
if (linked) {
  fillForm(linked);
  await select();
}
document.body.dataset.ready = "yes";
