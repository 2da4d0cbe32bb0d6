// Filters the list of calls, and sends the calls on the page, to this server only.
//
//   input[data-filter]                       hides the entries of its menu that do not have its text
//   form[data-try][data-method][data-path]   a call; [data-in] are its parameters, textarea its body
//   [data-try-result]                        inside the form: the response
//   button[data-make-key]                    creates a test key and puts it into #try-key
"use strict";

(() => {
  const key = document.getElementById("try-key");

  // A link to an entry that is closed opens it.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.matches("details")) target.open = true;
  };
  addEventListener("hashchange", open);
  open();

  addEventListener("input", (event) => {
    if (!event.target.matches("[data-filter]")) return;
    const wanted = event.target.value.trim().toLowerCase().split(/\s+/);
    let found = 0;
    for (const list of event.target.closest("nav").querySelectorAll("ul")) {
      let left = 0;
      for (const entry of list.children) {
        const text = `${entry.textContent} ${entry.dataset.about ?? ""}`.toLowerCase();
        entry.hidden = !wanted.every((word) => text.includes(word));
        left += entry.hidden ? 0 : 1;
      }
      list.hidden = left === 0;
      list.previousElementSibling.hidden = left === 0;
      found += left;
    }
    document.getElementById("filter-none").hidden = found > 0;
  });

  const pretty = (text) => {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  };

  const send = async (method, path, headers, body) => {
    const began = performance.now();
    try {
      const answer = await fetch(path, { method, headers: { Accept: "application/json", ...headers }, body });
      const text = await answer.text();
      return { ok: answer.ok, text, status: `${answer.status} after ${Math.round(performance.now() - began)} ms` };
    } catch {
      return { ok: false, text: "", status: "The server did not answer. Is it still running?" };
    }
  };

  addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-make-key]");
    if (!button) return;
    const made = await send("POST", button.dataset.makeKey, { "Content-Type": "application/json" }, '{"mode":"test"}');
    if (made.ok) key.value = JSON.parse(made.text).key.secret;
    document.getElementById("try-key-status").textContent = made.ok ? "A new test key. Calls below use it." : made.status;
  });

  addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form[data-try]")) return;
    event.preventDefault();
    const [query, headers] = [new URLSearchParams(), {}];
    let path = form.dataset.path;
    for (const field of form.querySelectorAll("[data-in]")) {
      const value = field.value.trim();
      if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
      else if (value && field.dataset.in === "query") query.append(field.name, value);
      else if (value && field.dataset.in === "header") headers[field.name] = value;
    }
    const body = form.querySelector("textarea")?.value.trim() || undefined;
    if (body) headers["Content-Type"] = "application/json";
    if (form.hasAttribute("data-needs-key") && key.value.trim()) headers.Authorization = `Bearer ${key.value.trim()}`;
    const target = query.size > 0 ? `${path}?${query}` : path;
    const answer = await send(form.dataset.method, target, headers, body);
    const result = form.querySelector("[data-try-result]");
    result.hidden = false;
    result.textContent = `${answer.status}\n${pretty(answer.text)}`;
  });
})();
