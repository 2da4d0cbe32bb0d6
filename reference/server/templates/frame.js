// The script of all pages: clock, live updates, copying. Pages also work without it.
//
//   html[data-now][data-pace]   the service clock: milliseconds since 1970, seconds a second (0: frozen)
//   html[data-live]             where the page's stream of changes is
//   [data-part][data-mark]      a part that the stream replaces when its mark differs
//   [data-say]                  inside a part: the text announced to screen readers when it changes
//   [data-title]                inside a part: the title of the browser's tab
//   time[data-until]            counts down to its datetime
//   time[data-clock]            shows the service clock, in UTC
//   button[data-copy]           copies the text of the element with that id
//   form[data-quiet]            is sent without leaving the page; [data-result] inside shows the result
"use strict";

(() => {
  const root = document.documentElement;
  root.classList.add("scripted");

  // The service clock.
  const clock = { shown: Number(root.dataset.now), pace: Number(root.dataset.pace), at: performance.now() };
  const now = () => clock.shown + (performance.now() - clock.at) * clock.pace;
  const setClock = (shown, pace) => Object.assign(clock, { shown, pace, at: performance.now() });

  const two = (n) => String(n).padStart(2, "0");
  const countDown = () => {
    for (const element of document.querySelectorAll("time[data-until]")) {
      const left = Math.max(0, Math.ceil((Date.parse(element.dateTime) - now()) / 1000));
      const hours = Math.floor(left / 3600);
      const rest = two(Math.floor(left / 60) % 60) + ":" + two(left % 60);
      const text = hours > 0 ? hours + ":" + rest : rest;
      if (element.textContent !== text) element.textContent = text;
    }
    for (const element of document.querySelectorAll("time[data-clock]")) {
      element.dateTime = new Date(now()).toISOString();
      const text = element.dateTime.slice(0, 19).replace("T", " ");
      if (element.textContent !== text) element.textContent = text;
    }
  };
  countDown();
  setInterval(countDown, 250);

  // Changes are announced once, by an element that is never replaced.
  const announce = (text) => {
    const place = document.getElementById("announce");
    if (place && text && place.textContent !== text) place.textContent = text;
  };

  const replace = ({ id, mark, html }) => {
    const part = document.querySelector('[data-part="' + id + '"]');
    if (!part || part.dataset.mark === mark) return;
    const announced = part.querySelector("[data-say]")?.textContent;
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    const open = new Set([...part.querySelectorAll("details[id][open]")].map((it) => it.id));
    // Input of the user stays; untouched fields are replaced by the server's.
    const changed = (it) => (it.options ? !it.options[it.selectedIndex]?.defaultSelected && it.selectedIndex > 0 : it.value !== it.defaultValue);
    const fields = [...part.querySelectorAll("input[id], select[id], textarea[id]")].filter(changed).map((it) => [it.id, it.value]);
    // Rendered by the server with all input escaped, as on the page itself.
    part.innerHTML = html;
    part.dataset.mark = mark;
    for (const it of part.querySelectorAll("details[id]")) it.open = it.open || open.has(it.id);
    for (const [id, value] of fields) {
      const field = part.querySelector("#" + CSS.escape(id));
      if (field) field.value = value;
    }
    if (focused) {
      // The focused element may be gone: then the part gets the focus, so that no key activates its successor.
      part.tabIndex = -1;
      (document.getElementById(focused) ?? part).focus({ preventScroll: true });
    }
    const says = part.querySelector("[data-say]")?.textContent;
    if (says !== announced) announce(says);
    document.title = part.querySelector("[data-title]")?.dataset.title ?? document.title;
  };

  if (root.dataset.live && "EventSource" in window) {
    let stream = null;
    const close = () => {
      stream?.close();
      stream = null;
    };
    // The first message contains the whole page, so nothing is missed by opening late.
    const open = () => {
      if (stream || document.hidden) return;
      stream = new EventSource(root.dataset.live);
      stream.onmessage = (message) => {
        const news = JSON.parse(message.data);
        setClock(news.now, news.pace);
        news.parts.forEach(replace);
        countDown();
      };
    };
    open();
    // A browser opens six connections to a server, so a hidden page uses none of them.
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
    addEventListener("pagehide", close);
    addEventListener("pageshow", open);
  }

  const copy = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    // Without https this is the only clipboard API.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("not copied");
  };

  addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copy)?.textContent.trim() ?? "";
    const label = button.dataset.label ?? (button.dataset.label = button.textContent);
    try {
      await copy(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it";
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    }
    announce(button.textContent);
    setTimeout(() => (button.textContent = label), 1500);
  });

  addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form[data-quiet]")) return;
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(form, event.submitter));
    const result = form.querySelector("[data-result]") ?? document.querySelector("[data-result]");
    const say = (text, bad) => {
      if (!result) return announce(text);
      result.textContent = text;
      result.classList.toggle("bad", bad);
    };
    form.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(event.submitter?.getAttribute("formaction") ?? form.action, {
        method: "POST",
        body: fields,
        headers: { Accept: "application/json" },
      });
      const { message } = await answer.json();
      say(message, !answer.ok);
    } catch {
      say("The server did not answer. Is it still running?", true);
    } finally {
      form.removeAttribute("aria-busy");
    }
  });
})();
