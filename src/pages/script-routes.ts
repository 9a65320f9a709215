import { type AnyRoute, route } from "../http/route"
import { inboxScript, workerScript } from "./assets"

const SCRIPT = {
  ...({ method: "GET", callers: ["none"], scope: "-", status: [200] } satisfies Partial<AnyRoute>),
  produces: "text/javascript" as const,
}

/** The scripts that pages of any origin embed. They hold no secret, so they need no credential. */
export const scriptRoutes = ({ base_url }: { base_url: () => string }): AnyRoute[] => [
  route({
    ...SCRIPT,
    path: "/inbox.js",
    summary: "Get the script of the inbox component",
    description:
      "A page of any origin loads it as a module. It defines the element `belfry-inbox` and exports `InboxClient`, the same inbox without a look.",
    handle: ({ request }) => inboxScript(request),
  }),
  route({
    ...SCRIPT,
    path: "/sw.js",
    summary: "Get the service worker of Web Push",
    description:
      "The worker of a page's own origin imports it with `importScripts`. It shows push messages, opens what a click asks for, and acknowledges.",
    handle: ({ request }) => workerScript(request, base_url()),
  }),
]
