// The marks of a world: filters, details, and the keys that lead from mark to mark. Without it the page can be read.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const details = JSON.parse(byId("details").textContent);
  const marks = [...document.querySelectorAll(".mark")];
  const rows = [...document.querySelectorAll("tbody tr")];
  const filter = byId("filter");
  const panel = byId("panel");
  const laneOf = (mark) => mark.parentElement.cellIndex;
  const seen = (mark) => !mark.hidden && !mark.parentElement.hidden;
  let current = null;

  // Only one mark is reached with Tab; arrows lead on from there.
  const reach = (mark) => {
    for (const it of document.querySelectorAll('.mark[tabindex="0"]')) it.tabIndex = -1;
    if (mark) mark.tabIndex = 0;
  };

  const apply = () => {
    const object = filter.elements.object.value;
    const boxes = [...filter.querySelectorAll("input")];
    const off = new Set(boxes.filter((it) => !it.checked).map((it) => Number(it.value)));
    for (const row of document.querySelectorAll("tr:not(.day):not(.here)")) {
      for (const cell of row.cells) cell.hidden = off.has(cell.cellIndex);
    }
    for (const mark of marks) mark.hidden = object !== "" && !details[mark.value].objects.includes(object);
    let day = null;
    let last = "";
    for (const row of rows) {
      if (row.className === "day") {
        day = row;
        day.hidden = true;
      } else if (row.className === "here") {
        last = "";
      } else {
        row.hidden = ![...row.querySelectorAll(".mark")].some(seen);
        if (row.hidden) continue;
        if (day) day.hidden = false;
        const { dateTime } = row.querySelector("time");
        row.classList.toggle("same", dateTime === last);
        last = dateTime;
      }
    }
    const left = marks.filter(seen);
    byId("count").textContent =
      left.length === marks.length ? marks.length + " marks" : left.length + " of " + marks.length + " marks";
    if (!left.includes(document.querySelector('.mark[tabindex="0"]'))) reach(left[0]);
  };

  const element = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

  const show = (mark) => {
    if (current) current.removeAttribute("aria-current");
    current = mark;
    panel.hidden = !mark;
    document.body.classList.toggle("has-panel", Boolean(mark));
    if (!mark) return;
    mark.setAttribute("aria-current", "true");
    const { objects, step, details: lines } = details[mark.value];
    byId("panel-title").textContent = mark.textContent;
    byId("panel-objects").replaceChildren(
      ...objects.map((name) => {
        const only = element("button", "only " + name);
        only.type = "button";
        only.addEventListener("click", () => choose(name));
        return only;
      }),
    );
    byId("panel-details").replaceChildren(
      ...lines.flatMap(([name, text]) => [element("dt", name), element("dd", text)]),
    );
    byId("panel-open").hidden = step === null;
    byId("until").textContent = byId("until").dataset.command + " --until " + step;
    panel.scrollTop = 0;
    // The panel of a phone may have come to stand over the mark.
    mark.scrollIntoView({ block: "nearest", inline: "nearest" });
    const under = panel.getBoundingClientRect();
    const { bottom, right } = mark.getBoundingClientRect();
    if (bottom > under.top && right > under.left) mark.scrollIntoView({ block: "start" });
  };

  const choose = (name) => {
    filter.elements.object.value = name;
    apply();
    if (current && seen(current)) current.scrollIntoView({ block: "center" });
  };

  const go = (mark) => {
    if (!mark) return;
    reach(mark);
    mark.focus({ preventScroll: true });
    if (current) show(mark);
    else mark.scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  const target = (key, mark) => {
    const all = marks.filter(seen);
    const lane = all.filter((it) => laneOf(it) === laneOf(mark));
    switch (key) {
      case "ArrowRight": return all[all.indexOf(mark) + 1];
      case "ArrowLeft": return all[all.indexOf(mark) - 1];
      case "ArrowDown": return lane[lane.indexOf(mark) + 1];
      case "ArrowUp": return lane[lane.indexOf(mark) - 1];
      case "Home": return all[0];
      case "End": return all.at(-1);
      default: return undefined;
    }
  };

  document.addEventListener("keydown", (event) => {
    const mark = event.target.closest(".mark");
    if (event.key === "Escape" && current) {
      const back = current;
      show(null);
      back.focus();
    } else if (mark && /^(Arrow|Home|End)/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      go(target(event.key, mark));
    }
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches(".mark")) {
      reach(button);
      show(button);
    } else if (button.dataset.go) {
      const row = byId(button.dataset.go);
      row.scrollIntoView({ block: "center" });
      row.focus({ preventScroll: true });
      reach(marks.findLast((it) => seen(it) && it.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING));
    } else if (button.dataset.copy) {
      const text = byId(button.dataset.copy);
      getSelection().selectAllChildren(text);
      navigator.clipboard?.writeText(text.textContent).then(() => (button.textContent = "Copied"), () => {});
    } else if (button.id === "close") {
      const back = current;
      show(null);
      back?.focus();
    } else if (button.id === "save") {
      const link = document.createElement("a");
      link.download = button.dataset.file;
      link.href = URL.createObjectURL(new Blob([byId("scenario").value], { type: "application/yaml" }));
      link.click();
    }
  });

  filter.addEventListener("change", apply);
  filter.addEventListener("submit", (event) => event.preventDefault());
  // A browser that comes back keeps what was chosen.
  apply();
})();
