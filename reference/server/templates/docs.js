// Filters the list of operations, and sends requests from the page, to this server only.
//
//   input[data-filter]                       hides the entries of its menu that do not contain its text
//   form[data-try][data-method][data-path]   an operation; [data-in] are its parameters, textarea its body
//   [data-try-result]                        inside the form: the response
//   button[data-make-key]                    creates a test key and puts it into #try-key
"use strict";

(() => {
  const key = document.getElementById("try-key");

  // A link to a collapsed entry expands it.
  const expandTarget = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.matches("details")) target.open = true;
  };
  addEventListener("hashchange", expandTarget);
  expandTarget();

  addEventListener("input", (event) => {
    if (!event.target.matches("[data-filter]")) return;
    const words = event.target.value.trim().toLowerCase().split(/\s+/);
    let found = 0;
    for (const list of event.target.closest("nav").querySelectorAll("ul")) {
      let visible = 0;
      for (const entry of list.children) {
        const text = `${entry.textContent} ${entry.dataset.about ?? ""}`.toLowerCase();
        entry.hidden = !words.every((word) => text.includes(word));
        visible += entry.hidden ? 0 : 1;
      }
      list.hidden = visible === 0;
      list.previousElementSibling.hidden = visible === 0;
      found += visible;
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
    const startedAt = performance.now();
    try {
      const response = await fetch(path, { method, headers: { Accept: "application/json", ...headers }, body });
      const text = await response.text();
      return { ok: response.ok, text, status: `${response.status} after ${Math.round(performance.now() - startedAt)} ms` };
    } catch {
      return { ok: false, text: "", status: "The server did not respond. Is it still running?" };
    }
  };

  addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-make-key]");
    if (!button) return;
    const created = await send("POST", button.dataset.makeKey, { "Content-Type": "application/json" }, '{"mode":"test"}');
    if (created.ok) key.value = JSON.parse(created.text).key.secret;
    document.getElementById("try-key-status").textContent = created.ok ? "A new test key. The requests below use it." : created.status;
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
    const response = await send(form.dataset.method, target, headers, body);
    const result = form.querySelector("[data-try-result]");
    result.hidden = false;
    result.textContent = `${response.status}\n${pretty(response.text)}`;
  });
})();
