export class K3Graph extends HTMLElement {}
