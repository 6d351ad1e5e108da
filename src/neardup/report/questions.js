"use strict";
// Answers about pairs: a choice under each pair, and a button that saves the answers as JSON lines.
(() => {
  const list = document.getElementById("asked-list");
  const say = (english, chinese) => document.documentElement.lang.startsWith("zh") ? chinese : english;
  const rows = JSON.parse(list.dataset.rows), known = Number(list.dataset.known), answers = new Map();

  const form = document.createElement("form");
  form.id = "controls";
  form.innerHTML = `<span class="buttons"><button type="button" name="save">${say("Save the answers", "保存回答")}</button></span>
    <p class="status"><output name="state" role="status"></output><span class="keys"><kbd>y</kbd> <kbd>n</kbd> <kbd>s</kbd>
      ${say("to answer the pair in focus", "回答当前一对")}</span></p>`;
  list.before(form);
  const { save, state } = form.elements;
  let saved = true;

  function show() {
    state.value = say(`${answers.size} of ${rows.length} answered`, `已回答 ${answers.size} / ${rows.length}`);
    save.disabled = answers.size === 0;
  }

  // A thumb cannot reach a pair that is screens away: its answer closes a pair, and shows the next one.
  const byThumb = matchMedia("(pointer: coarse)").matches;
  const items = Array.from(list.children, (item, place) => {
    const pair = item.querySelector("details");
    pair.open = true;
    const choice = document.createElement("form");
    choice.className = "answer";
    choice.innerHTML = `<fieldset><legend>${say("Duplicates?", "是重复吗？")}</legend>
      <label><input type="radio" name="same" value="y">${say("yes", "是")}</label>
      <label><input type="radio" name="same" value="n">${say("no", "否")}</label>
      <label><input type="radio" name="same" value="s">${say("skip", "跳过")}</label></fieldset>`;
    choice.addEventListener("change", () => {
      answers.set(place, { y: true, n: false, s: null }[choice.elements.same.value]);
      saved = false;
      show();
      if (byThumb) {
        pair.open = false;
        items[place + 1]?.item.scrollIntoView();
      }
    });
    item.append(choice);
    return { item, choice };
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !/^[yns]$/.test(event.key)) return;
    const place = items.findIndex(({ item }) => item.contains(document.activeElement));
    if (place < 0) return;
    event.preventDefault();
    items[place].choice.querySelector(`[value=${event.key}]`).click();
    const next = items[place + 1];
    next?.item.querySelector("summary").focus();
    next?.item.scrollIntoView({ block: "nearest" });
  });

  save.addEventListener("click", () => {
    const lines = [...answers].sort(([a], [b]) => a - b).map(([place, duplicate]) => JSON.stringify({ ...rows[place], duplicate }));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines.map((line) => `${line}\n`), { type: "application/jsonl" }));
    link.download = "answers.jsonl";
    link.click();
    saved = true;
    const count = known + [...answers.values()].filter((answer) => answer !== null).length;
    state.value = say(
      `Saved. Append the file to earlier answers, if any, and run: neardup sweep … --ask ${count} --answers answers.jsonl`,
      `已保存。如有先前的回答，请接在其后，然后运行：neardup sweep … --ask ${count} --answers answers.jsonl`);
  });
  window.addEventListener("beforeunload", (event) => { if (!saved) event.preventDefault(); });
  show();
  items[0]?.item.querySelector("summary").focus({ preventScroll: true });
})();
