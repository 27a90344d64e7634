// The entry of the console: mounts the application.

import "./theme.css";
import "./base.css";
import "./frame.css";
import { render } from "preact";
import { applyTheme } from "../state/settings";
import { App } from "./App";

applyTheme();
render(<App />, document.getElementById("root")!);
