// What hosted pages do by themselves beyond what every page does.
"use strict";

addEventListener("click", (event) => {
  if (event.target.closest?.("[data-print]")) print();
});

// A picked amount and a typed one can't both be meant.
addEventListener("input", (event) => {
  const amount = document.getElementById("amount");
  if (event.target === amount) {
    for (const radio of document.querySelectorAll('input[name="suggested"]')) radio.checked = false;
  } else if (event.target.name === "suggested" && amount) {
    amount.value = "";
  }
});
