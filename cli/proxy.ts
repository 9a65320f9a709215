import { environment } from "./environment"

/**
 * The proxy that the environment names for an address (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`, in
 * either case), or undefined. `fetch` reads them by itself; a WebSocket has to be told. This
 * machine itself is never asked through a proxy.
 */
export function proxyFor(address: string, from = environment): string | undefined {
  const { protocol, hostname, port } = new URL(address)
  const is_secure = /^(https|wss):$/.test(protocol)
  const of = (name: string) => from[name.toLowerCase()] || from[name] || undefined
  if (isLoopback(hostname)) return undefined
  const given = of(is_secure ? "HTTPS_PROXY" : "HTTP_PROXY") ?? of("ALL_PROXY")
  const own_port = port || (is_secure ? "443" : "80")
  const excepted = (of("NO_PROXY") ?? "").split(/[\s,]+/).filter(Boolean)
  if (!given || excepted.some((entry) => isExcepted(entry, hostname, own_port))) return undefined
  return /^https?:\/\//.test(given) ? given : `http://${given}`
}

const isLoopback = (host: string) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host)

/** `*`, a name and all below it (with or without a leading dot), a name with its port. */
function isExcepted(entry: string, host: string, port: string): boolean {
  if (entry === "*") return true
  const [, name = "", wanted_port] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
  if (wanted_port !== undefined && wanted_port !== port) return false
  const bare = name.replace(/^\*?\./, "")
  return host === bare || host.endsWith(`.${bare}`)
}
