import "./api/arrival";
import { mount } from "svelte";
import App from "./App.svelte";
import { applyTheme, theme } from "./logic/theme";
import "./style.css";

applyTheme(theme());
const target = document.getElementById("app");
if (target) mount(App, { target });
