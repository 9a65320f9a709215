/** The script `/inbox.js`: the element for a page, and the same inbox without a look. */
export { InboxClient } from "./inbox-client"
