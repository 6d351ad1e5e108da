"use strict";
// Finding, filtering and sorting the removed documents. The page is complete without this script, so the form is
// made here. The state lives in the fragment (#q=words&kind=near&sort=high): a link to the page can carry it.
(() => {
  const list = document.getElementById("removed-list");
  if (!list) return;

  const form = document.createElement("form");
  form.id = "controls";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Removed documents");
  form.innerHTML = `
    <label class="field grow">Find in ids, files and texts
      <input type="search" name="q" autocomplete="off" spellcheck="false" aria-keyshortcuts="/"></label>
    <fieldset><legend>Show</legend>
      <label><input type="radio" name="kind" value="" checked>all</label>
      <label><input type="radio" name="kind" value="exact">copies</label>
      <label><input type="radio" name="kind" value="near">near-duplicates</label></fieldset>
    <label class="field">Sort by <select name="sort"><option value="">order of the run</option>
      <option value="high">most similar first</option><option value="low">least similar first</option></select></label>
    <span class="buttons"><button type="button" name="open">Open all</button>
      <button type="button" name="close">Close all</button></span>
    <p class="status"><output name="shown" role="status"></output><span class="keys"><kbd>/</kbd> to search,
      <kbd>↑</kbd> <kbd>↓</kbd> to move, <kbd>Enter</kbd> to open</span></p>`;
  list.before(form);
  const { q, kind, sort, shown, open, close } = form.elements;

  const items = Array.from(list.children, (node, order) => ({
    node, order, kind: node.dataset.kind, similarity: Number(node.dataset.similarity), words: null,
  }));
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const words = (item) => item.words ??= fold(
    Array.from(item.node.querySelectorAll(".texts .id, .texts .place, .text"), (part) => part.textContent).join("\n"));
  const orders = {
    "": (a, b) => a.order - b.order,
    high: (a, b) => b.similarity - a.similarity || a.order - b.order,
    low: (a, b) => a.similarity - b.similarity || a.order - b.order,
  };
  let sorted = "";

  function apply() {
    const wanted = fold(q.value.trim());
    let count = 0;
    for (const item of items) {
      const fits = (!kind.value || kind.value === item.kind) && (!wanted || words(item).includes(wanted));
      item.node.hidden = !fits;
      count += fits;
    }
    if (sort.value !== sorted) {
      sorted = sort.value;
      list.append(...[...items].sort(orders[sorted]).map((item) => item.node));
    }
    shown.value = count ? `${count} of ${items.length} shown` : `None of ${items.length} fits: change the words or show all.`;
  }

  function remember() {
    const state = new URLSearchParams();
    for (const field of [q, kind, sort]) if (field.value) state.set(field === q ? "q" : field === kind ? "kind" : "sort", field.value);
    // Some browsers refuse this for file: pages; the filter works without it.
    try { history.replaceState(null, "", `#${String(state) || "removed"}`); } catch { /* only the link is lost */ }
  }

  function recall() {
    const fragment = location.hash.slice(1);
    const target = /^removed-\d+$/.test(fragment) && document.getElementById(fragment);
    if (target) target.querySelector("details").open = true;
    if (fragment.includes("=")) {
      const state = new URLSearchParams(fragment);
      q.value = state.get("q") ?? "";
      kind.value = ["exact", "near"].includes(state.get("kind")) ? state.get("kind") : "";
      sort.value = state.get("sort") in orders ? state.get("sort") : "";
      document.getElementById("removed").scrollIntoView();
    }
    apply();
  }

  const visible = () => Array.from(list.querySelectorAll("li:not([hidden]) > details"));
  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { apply(); remember(); }, 60);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  open.addEventListener("click", () => visible().forEach((item) => { item.open = true; }));
  close.addEventListener("click", () => visible().forEach((item) => { item.open = false; }));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing) {
      event.preventDefault();
      q.focus();
      q.select();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const all = visible();
      const at = all.findIndex((item) => item.firstElementChild === event.target);
      const next = all[at + (event.key === "ArrowDown" ? 1 : -1)];
      if (at >= 0 || (event.target === q && event.key === "ArrowDown")) {
        (next ?? (at > 0 ? all[at] : undefined))?.firstElementChild.focus();
        event.preventDefault();
      }
    }
  });
  window.addEventListener("hashchange", recall);
  recall();
})();
