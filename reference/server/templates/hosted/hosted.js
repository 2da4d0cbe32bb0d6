// The script of hosted pages, in addition to that of all pages.
"use strict";

addEventListener("click", (event) => {
  if (event.target.closest?.("[data-print]")) print();
});

// A selected amount and a typed one exclude each other.
addEventListener("input", (event) => {
  const amount = document.getElementById("amount");
  if (event.target === amount) {
    for (const radio of document.querySelectorAll('input[name="suggested"]')) radio.checked = false;
  } else if (event.target.name === "suggested" && amount) {
    amount.value = "";
  }
});
