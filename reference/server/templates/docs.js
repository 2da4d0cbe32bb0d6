// Sends the calls that the page describes, to this server only.
//
//   form[data-try][data-method][data-path]   a call; [data-in] are its parameters, textarea its body
//   [data-try-result]                        inside the form: what came back
//   button[data-make-key]                    makes a test key and puts it into #try-key
"use strict";

(() => {
  const key = document.getElementById("try-key");

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
      return { ok: answer.ok, text, said: `${answer.status} after ${Math.round(performance.now() - began)} ms` };
    } catch {
      return { ok: false, text: "", said: "The server did not answer. Is it still running?" };
    }
  };

  addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-make-key]");
    if (!button) return;
    const made = await send("POST", button.dataset.makeKey, { "Content-Type": "application/json" }, '{"mode":"test"}');
    if (made.ok) key.value = JSON.parse(made.text).key.secret;
    document.getElementById("try-key-said").textContent = made.ok ? "A new test key. Calls below use it." : made.said;
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
    result.textContent = `${answer.said}\n${pretty(answer.text)}`;
  });
})();
