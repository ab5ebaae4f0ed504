/** Light, dark, or as the system has it; remembered by this browser only. */
export type Theme = "system" | "light" | "dark";

const KEY = "apoidea-theme";

export function theme(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function setTheme(choice: Theme): void {
  localStorage.setItem(KEY, choice);
  applyTheme(choice);
}

export function applyTheme(choice: Theme): void {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}
