"use strict";
// Look up a text, show what the index has seen, and compare the two. Whatever comes from the corpus enters the page as
// text nodes only (`element`, `shown`); there is no innerHTML. A token is kept in this closure and nowhere else.
(() => {
  const byId = (id) => document.getElementById(id);
  const [form, text, status, hits] = ["lookup", "text", "status", "hits"].map(byId);
  let token = "";
  let current = 0;

  function element(name, attributes, ...children) {
    const svg = ["svg", "rect", "path", "text", "title", "line"].includes(name);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes ?? {})) node.setAttribute(key, value);
    node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  }

  // Characters that hide or reorder the text around them are shown by their code points.
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]/g;
  function shown(content) {
    const parts = [];
    let position = 0;
    for (const found of content.replaceAll("\r\n", "\n").matchAll(HIDDEN)) {
      parts.push(found.input.slice(position, found.index));
      const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      parts.push(element("span", { class: "hidden" }, `[U+${code}]`));
      position = found.index + 1;
    }
    parts.push(content.replaceAll("\r\n", "\n").slice(position));
    return parts.filter((part) => part !== "");
  }

  class Problem extends Error {}

  async function call(path, body) {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const options = { method: body === undefined ? "GET" : "POST", headers, cache: "no-store" };
    if (body !== undefined) options.body = JSON.stringify(body);
    let response;
    try {
      response = await fetch(path, options);
    } catch {
      throw new Problem("The service does not answer. Is it running?");
    }
    const answer = await response.json().catch(() => ({ detail: `The service answered ${response.status}.` }));
    if (response.status === 401) {
      byId("token-form").hidden = false;
      byId("token").focus();
    }
    if (!response.ok) throw new Problem(answer.detail);
    return answer;
  }

  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 4 });
  const date = (value) => value ? new Date(value).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : "";
  const time = (value) => element("time", { datetime: value, title: value }, date(value));
  const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
  const ratio = (value) => value === 1 ? "1" : (Math.floor(value * 1000) / 1000).toFixed(3);

  function say(message, isProblem = false) {
    status.textContent = message;
    status.classList.toggle("problem", isProblem);
  }

  // Look up.
  async function look() {
    const asked = text.value;
    if (!asked.trim()) {
      say("Paste a text first.", true);
      text.focus();
      return;
    }
    const turn = ++current;
    byId("submit").disabled = true;
    say("Looking up…");
    const begun = performance.now();
    try {
      const { results } = await call("/v1/query", { texts: [asked], limit: 20 });
      if (turn !== current) return;
      const spent = Math.max(1, Math.round(performance.now() - begun));
      show(asked, results[0]);
      const count = results[0].length;
      say(count ? `Yes: ${plural(count, "near-duplicate")} in ${spent} ms.` : `No: no near-duplicate in ${spent} ms.`);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (turn === current) say(error.message, true);
    } finally {
      if (turn === current) byId("submit").disabled = false;
    }
  }

  function show(asked, found) {
    byId("found").hidden = found.length === 0;
    hits.replaceChildren(...found.map((hit) => item(asked, hit)));
    if (found.length) hits.querySelector("details").open = true;
  }

  function item(asked, hit) {
    const measure = hit.similarity ?? hit.structure;
    const kind = hit.exact ? "copy" : hit.distance !== null ? plural(hit.distance, "bit") + " apart" : "near-duplicate";
    const details = element("details", {},
      element("summary", {},
        element("span", { class: "measure", title: "similarity" }, measure === null ? "–" : ratio(measure)),
        element("span", { class: "kind" }, kind),
        element("bdi", { class: "id", title: hit.id }, ...shown(hit.id)),
        element("span", { class: "dates" }, "first seen ", time(hit.first_seen))));
    details.addEventListener("toggle", () => {
      if (details.open && !details.dataset.filled) fill(details, asked, hit);
    });
    return element("li", {}, details);
  }

  async function fill(details, asked, hit) {
    details.dataset.filled = "yes";
    const body = element("div", { class: "detail-body", "aria-live": "polite" }, element("p", { class: "hint" }, "Comparing…"));
    details.append(body);
    try {
      const kept = await call(`/v1/documents/${encodeURIComponent(hit.id)}`);
      const compared = await call("/v1/compare", { left: asked, right: kept.text ?? asked });
      body.replaceChildren(facts(hit, kept, kept.text === null ? null : compared), ...sides(hit, kept, compared));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      body.replaceChildren(element("p", { class: "hint" }, error.message));
      delete details.dataset.filled;
    }
  }

  function facts(hit, kept, compared) {
    const list = element("dl", { class: "facts" });
    const add = (term, ...value) => list.append(element("div", {}, element("dt", {}, term), element("dd", {}, ...value)));
    if (hit.similarity !== null) add("similarity", number(hit.similarity));
    if (hit.structure !== null) add("similarity of structure", number(hit.structure));
    if (hit.distance !== null) add("distance", plural(hit.distance, "bit"));
    const { num_left: left, num_right: right, num_shared: both, jaccard } = compared?.measures ?? {};
    if (jaccard !== undefined && jaccard !== hit.similarity) add("Jaccard similarity", number(jaccard));
    if (both !== undefined) add("features", `${number(both)} in both, ${number(left - both)} in yours only, ${number(right - both)} in the other only`);
    add("first seen", time(hit.first_seen));
    add("last seen", time(hit.last_seen));
    if (kept.import_name) add("import_name", ...shown(kept.import_name));
    const payload = hit.payload;
    if (payload !== null) add("payload", element("code", {}, ...shown(typeof payload === "string" ? payload : JSON.stringify(payload))));
    return list;
  }

  // Both texts, side by side.
  function sides(hit, kept, compared) {
    const missing = element("p", { class: "hint" }, "The index stores no texts: make one with --storage text to see both side by side.");
    const marked = kept.text === null ? [[], [missing]] : marks(compared);
    const prints = [compared.left_fingerprint, kept.text === null ? kept.sketch : compared.right_fingerprint];
    const column = (side, title, id, tag) => element("div", { class: side === 0 ? "left" : "right kept" },
      element("h3", {}, title, id === "" ? "" : element("bdi", { class: "id" }, ...shown(id))),
      ...(prints[0] && prints[1] ? [grid(prints[side], prints[1 - side])] : []),
      element("div", compared.is_outline ? { class: "text outline" } : { class: "text", dir: "auto" }, ...marked[side]));
    return [element("div", { class: "texts" }, column(0, compared.is_outline ? "Your page" : "Your text", ""), column(1, "In the index: ", hit.id))];
  }

  const FOLDED = 500, CONTEXT = 160;
  function marks({ stretches, left_passages, right_passages }) {
    const columns = [[], []];
    const tags = ["del", "ins"];
    const differing = (side, content) => {
      const end = content.trimEnd().length;
      return [element(tags[side], {}, ...shown(content.slice(0, end))), ...shown(content.slice(end))];
    };
    if (stretches) {
      stretches.forEach(({ left, right, shared }, index) => [left, right].forEach((content, side) => {
        if (content === "") return;
        if (shared) columns[side].push(...fold(content, index > 0, index < stretches.length - 1));
        else columns[side].push(...differing(side, content));
      }));
    } else {
      [left_passages, right_passages].forEach((passages, side) => passages.forEach(({ text: content, shared }, index) => {
        if (shared) columns[side].push(...fold(content, index > 0, index < passages.length - 1));
        else columns[side].push(...differing(side, content));
      }));
    }
    return columns;
  }

  // A long shared passage is folded to its ends next to a difference; a button shows all of it.
  function fold(content, before, after) {
    if (content.length <= FOLDED) return shown(content);
    const head = before ? CONTEXT : after ? 0 : FOLDED;
    const tail = after ? CONTEXT : 0;
    const inner = content.slice(head, content.length - tail);
    const button = element("button", { type: "button", class: "fold" }, `Show ${number(inner.length)} characters that both have`);
    button.addEventListener("click", () => button.replaceWith(...shown(inner)));
    return [...shown(content.slice(0, head)), button, ...shown(tail ? content.slice(-tail) : "")];
  }

  // A fingerprint, the most significant bit first, 16 bits in a row; bits that differ from the other's are lit.
  function grid(hexadecimal, other) {
    const bits = (digits) => Array.from(digits, (digit) => parseInt(digit, 16).toString(2).padStart(4, "0")).join("");
    const [own, others] = [bits(hexadecimal), bits(other)];
    const rows = Math.ceil(own.length / 16);
    const differing = Array.from(own).filter((bit, index) => bit !== others[index]).length;
    const cells = Array.from(own, (bit, index) => element("rect", {
      x: (index % 16) * 17 + 1.5, y: Math.floor(index / 16) * 17 + 1.5, width: 12, height: 12, rx: 2,
      class: `${bit === "1" ? "one" : "zero"}${bit === others[index] ? "" : " differs"}`,
    }));
    const name = `Fingerprint ${hexadecimal}: ${differing} of ${own.length} bits differ`;
    return element("div", {},
      element("svg", { class: "bits", viewBox: `0 0 272 ${rows * 17}`, role: "img", "aria-label": name }, element("title", {}, name), ...cells),
      element("p", { class: "caption" }, element("code", {}, hexadecimal), ` · ${plural(differing, "bit")} of ${own.length} differ`));
  }

  // The index.
  async function overview() {
    try {
      const stats = await call("/v1/stats");
      const { index } = stats;
      const name = index.address.replace(/\/+$/, "").split("/").at(-1);
      byId("eyebrow").textContent = `neardup · ${name} · ${plural(index.documents.kept, "document")} kept`;
      const rows = [
        ["Kept", number(index.documents.kept)],
        ["Removed", number(index.documents.removed)],
        ["Size", index.bytes === null ? "" : size(index.bytes)],
        ["Per document", index.bytes_per_document === null ? "" : size(index.bytes_per_document)],
        ["Method", method(index.method)],
        ["Stored", index.index.storage],
        ["Created", date(index.created / 1000)],
        ["Open imports", index.imports.length ? number(index.imports.length) : ""],
      ];
      byId("numbers").replaceChildren(...rows.filter(([, value]) => value !== "").map(([name, value]) =>
        element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "n" }, ...shown(value)))));
      byId("growth").replaceChildren(...chart(stats.growth));
      byId("index").hidden = false;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      say(error.message, true);
    }
  }

  function size(bytes) {
    const power = Math.min(4, Math.floor(Math.log10(Math.max(bytes, 1)) / 3));
    return `${(bytes / 1000 ** power).toLocaleString("en", { maximumFractionDigits: 1 })} ${["bytes", "kB", "MB", "GB", "TB"][power]}`;
  }

  function method({ method: name, tokens, ngram, threshold, max_distance }) {
    const limit = name === "SimHash" ? `distance ${max_distance} at most` : `similarity ${threshold} or more`;
    return `${name}: ${ngram > 1 ? `${ngram}-grams of ${tokens}` : tokens}, ${limit}`;
  }

  function chart(growth) {
    if (growth.length < 2) return [];
    const points = growth.map(({ time, documents }) => [new Date(time).getTime(), documents]);
    const [first, last] = [points[0][0], points.at(-1)[0]];
    if (last <= first) return [];
    const most = points.at(-1)[1];
    const place = ([at, count]) => `${(8 + (at - first) / (last - first) * 404).toFixed(1)},${(150 - count / most * 120).toFixed(1)}`;
    const line = `M${points.map(place).join("L")}`;
    const name = `The index has grown to ${plural(most, "document")} since ${date(first)}`;
    const day = (value) => new Date(value).toLocaleString("en-GB", last - first > 2 * 864e5 ? { dateStyle: "medium" } : { dateStyle: "short", timeStyle: "short" });
    return [
      element("figcaption", {}, "Documents over time"),
      element("svg", { viewBox: "0 0 420 178", role: "img", "aria-label": name }, element("title", {}, name),
        element("path", { class: "under", d: `${line}L412,150L8,150Z` }),
        element("line", { class: "axis", x1: 8, x2: 412, y1: 150, y2: 150 }),
        element("path", { class: "line", d: line }),
        element("text", { x: 8, y: 170 }, day(first)),
        element("text", { x: 412, y: 170, "text-anchor": "end" }, day(last)),
        element("text", { x: 412, y: 18, "text-anchor": "end" }, number(most))),
    ];
  }

  // Files: dropped or opened. A page that names its charset is decoded by it, anything else as UTF-8.
  async function open(file) {
    if (file.size > 64 * 1024 * 1024) {
      say(`${file.name} has ${number(file.size)} bytes. Open a smaller file.`, true);
      return;
    }
    const bytes = new Uint8Array(await file.arrayBuffer());
    const head = new TextDecoder("latin1").decode(bytes.slice(0, 2048));
    const named = head.match(/<meta[^>]+charset\s*=\s*["']?([\w-]+)/i)?.[1] ?? "utf-8";
    let decoder;
    try { decoder = new TextDecoder(named); } catch { decoder = new TextDecoder(); }
    text.value = decoder.decode(bytes);
    say(`${file.name} is loaded.`);
    await look();
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); look(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); look(); }
  });
  byId("file").addEventListener("change", (event) => { if (event.target.files[0]) open(event.target.files[0]); });
  for (const name of ["dragenter", "dragover"]) {
    form.addEventListener(name, (event) => { event.preventDefault(); form.classList.add("dropping"); });
  }
  form.addEventListener("dragleave", () => form.classList.remove("dropping"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("dropping");
    const [file] = event.dataTransfer.files;
    const dropped = event.dataTransfer.getData("text/plain");
    if (file) open(file);
    else if (dropped) { text.value = dropped; look(); }
  });
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    token = byId("token").value.trim();
    byId("token").value = "";
    byId("token-form").hidden = true;
    say("");
    overview();
    if (text.value.trim()) look();
  });
  text.focus();
  overview();
})();
