/** The script `/inbox.js`: the element for a page, and the same inbox without a look. */
import "./inbox-element"

export { InboxClient } from "./inbox-client"
