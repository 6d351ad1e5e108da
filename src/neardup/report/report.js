"use strict";
// Finding, filtering and sorting the removed documents. The page is complete without this script, so the form is
// made here. The state lives in the fragment (#q=words&kind=near&sort=high): a link to the page can carry it.
(() => {
  const list = document.getElementById("removed-list");
  if (!list) return;
  const say = (english, chinese) => document.documentElement.lang.startsWith("zh") ? chinese : english;

  const form = document.createElement("form");
  form.id = "controls";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", say("Removed documents", "被删除的文档"));
  form.innerHTML = `
    <label class="field grow">${say("Find in ids, files and texts", "在 id、文件名和正文中查找")}
      <input type="search" name="q" autocomplete="off" spellcheck="false" aria-keyshortcuts="/"></label>
    <fieldset><legend>${say("Show", "显示")}</legend>
      <label><input type="radio" name="kind" value="" checked>${say("all", "全部")}</label>
      <label><input type="radio" name="kind" value="exact">${say("copies", "副本")}</label>
      <label><input type="radio" name="kind" value="near">${say("near-duplicates", "近似重复")}</label></fieldset>
    <label class="field">${say("Sort by", "排序")}
      <select name="sort"><option value="">${say("order of the run", "运行顺序")}</option>
      <option value="high">${say("most similar first", "最相似的在前")}</option>
      <option value="low">${say("least similar first", "最不相似的在前")}</option></select></label>
    <span class="buttons"><button type="button" name="open">${say("Open all", "全部展开")}</button>
      <button type="button" name="close">${say("Close all", "全部收起")}</button></span>
    <p class="status"><output name="shown" role="status"></output><span class="keys"><kbd>/</kbd> ${say("to search,", "搜索，")}
      <kbd>↑</kbd> <kbd>↓</kbd> ${say("to move,", "移动，")} <kbd>Enter</kbd> ${say("to open", "展开")}</span></p>`;
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
    const none = say(
      `None of ${items.length} fits: change the words or show all.`, `${items.length} 篇均不符合，请修改查找内容或显示全部。`);
    shown.value = count ? say(`${count} of ${items.length} shown`, `显示 ${count} / ${items.length} 篇`) : none;
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
