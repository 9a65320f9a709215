import type { AnyRoute } from "./route"

/** One request of the route, for a shell. */
export function sampleOf(route: AnyRoute, path: string): { lang: "Shell"; source: string } {
  if (route.socket) return { lang: "Shell", source: socketSample(route.socket, path) }
  const { method, body, example } = route
  const parts = [
    `curl -sS ${method === "GET" ? "" : `-X ${method} `}"$BELFRY_URL${path}"`,
    ...credentialOf(route),
    ...(body ? [`-H "Content-Type: application/json"`, `-d '${JSON.stringify(example)}'`] : []),
  ]
  return { lang: "Shell", source: parts.join(" \\\n  ") }
}

const socketSample = (protocol: string, path: string) =>
  `websocat -H "X-API-Key: $BELFRY_API_KEY" --protocol ${protocol} "$BELFRY_WS_URL${path}"`

function credentialOf({ callers }: AnyRoute): string[] {
  if (callers.includes("key")) return [`-H "X-API-Key: $BELFRY_API_KEY"`]
  return callers[0] === "console" ? [`-H "Authorization: Bearer $BELFRY_TOKEN"`] : []
}
