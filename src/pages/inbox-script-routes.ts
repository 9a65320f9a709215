import { type AnyRoute, route } from "../http/route"
import { inboxScript } from "./assets"

/** The script that a page of any origin embeds. It holds no secret, so it needs no credential. */
export const inboxScriptRoute: AnyRoute = route({
  method: "GET",
  path: "/inbox.js",
  callers: ["none"],
  scope: "-",
  status: [200],
  summary: "Get the script of the inbox component",
  description:
    "A page of any origin loads it as a module. It defines the element `belfry-inbox` and exports `InboxClient`, the same inbox without a look.",
  produces: "text/javascript",
  handle: ({ request }) => inboxScript(request),
})
