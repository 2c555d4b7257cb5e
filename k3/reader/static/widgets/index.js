// Defines the elements of the page: <k3-widget> and <k3-graph>.
import {K3Graph} from "./graph-pane.js";
import {K3Widget} from "./element.js";

customElements.define("k3-widget", K3Widget);
customElements.define("k3-graph", K3Graph);
