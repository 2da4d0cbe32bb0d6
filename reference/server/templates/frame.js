// The script of all pages: clock, live updates, copying. Pages also work without it.
//
//   html[data-now][data-pace]   the service clock: milliseconds since 1970, and its speed (0: frozen)
//   html[data-live]             the URL of the page's stream of changes
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
  const clock = { time: Number(root.dataset.now), speed: Number(root.dataset.pace), readAt: performance.now() };
  const now = () => clock.time + (performance.now() - clock.readAt) * clock.speed;
  const setClock = (time, speed) => Object.assign(clock, { time, speed, readAt: performance.now() });

  const twoDigits = (n) => String(n).padStart(2, "0");
  const countDown = () => {
    for (const element of document.querySelectorAll("time[data-until]")) {
      const left = Math.max(0, Math.ceil((Date.parse(element.dateTime) - now()) / 1000));
      const hours = Math.floor(left / 3600);
      const rest = twoDigits(Math.floor(left / 60) % 60) + ":" + twoDigits(left % 60);
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
    const region = document.getElementById("announce");
    if (region && text && region.textContent !== text) region.textContent = text;
  };

  const replace = ({ id, mark, html }) => {
    const part = document.querySelector('[data-part="' + id + '"]');
    if (!part || part.dataset.mark === mark) return;
    const announced = part.querySelector("[data-say]")?.textContent;
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    const open = new Set([...part.querySelectorAll("details[id][open]")].map((details) => details.id));
    // Changed fields keep the user's input; the others get the server's value.
    const isChanged = (field) =>
      field.options
        ? !field.options[field.selectedIndex]?.defaultSelected && field.selectedIndex > 0
        : field.value !== field.defaultValue;
    const fields = [...part.querySelectorAll("input[id], select[id], textarea[id]")].filter(isChanged).map((field) => [field.id, field.value]);
    // Rendered by the server with all input escaped, as on the page itself.
    part.innerHTML = html;
    part.dataset.mark = mark;
    for (const details of part.querySelectorAll("details[id]")) details.open = details.open || open.has(details.id);
    for (const [id, value] of fields) {
      const field = part.querySelector("#" + CSS.escape(id));
      if (field) field.value = value;
    }
    if (focused) {
      // If the focused element was removed, the part gets the focus, so that no key press activates another element.
      part.tabIndex = -1;
      (document.getElementById(focused) ?? part).focus({ preventScroll: true });
    }
    const toAnnounce = part.querySelector("[data-say]")?.textContent;
    if (toAnnounce !== announced) announce(toAnnounce);
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
        const update = JSON.parse(message.data);
        setClock(update.now, update.pace);
        update.parts.forEach(replace);
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
    const showResult = (text, isError) => {
      if (!result) return announce(text);
      result.textContent = text;
      result.classList.toggle("bad", isError);
    };
    form.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(event.submitter?.getAttribute("formaction") ?? form.action, {
        method: "POST",
        body: fields,
        headers: { Accept: "application/json" },
      });
      const { message } = await response.json();
      showResult(message, !response.ok);
    } catch {
      showResult("The server did not respond. Is it still running?", true);
    } finally {
      form.removeAttribute("aria-busy");
    }
  });
})();
