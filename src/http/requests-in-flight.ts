import { addressBytes } from "../lib/ip-ranges"

/** The server, as far as it knows where a request came from. */
interface Addresses {
  requestIP(request: Request): { address: string; port: number } | null
}

const whole = new WeakSet<Request>()

/** Tells that everything of the request is here. Before that its connection waits for the client. */
export const bodyArrived = (request: Request): void => void whole.add(request)

/** The requests that are being answered, and where they came from. */
export class RequestsInFlight {
  readonly #requests = new Set<Request>()

  /** Holds the request until its answer is there. Returns the same promise: another one costs time. */
  hold(request: Request, answer: Promise<Response>): Promise<Response> {
    const forget = () => void this.#requests.delete(request)
    this.#requests.add(request)
    answer.then(forget, forget)
    return answer
  }

  /** Address and port as bytes, of each that works and of each that waits for its body. */
  peers(server: Addresses): { working: Set<string>; reading: Set<string> } {
    const working = new Set<string>()
    const reading = new Set<string>()
    for (const request of this.#requests) {
      const peer = peerOf(request, server)
      if (peer !== undefined) (isWhole(request) ? working : reading).add(peer)
    }
    return { working, reading }
  }
}

const isWhole = (request: Request) =>
  request.method === "GET" || request.method === "HEAD" || whole.has(request)

/** Address and port as bytes, like `OpenConnection.peer`; undefined for one that is closed. */
export function peerOf(request: Request, server: Addresses): string | undefined {
  const found = server.requestIP(request)
  if (!found) return undefined
  const port = String.fromCharCode(found.port >> 8, found.port & 0xff)
  return addressBytes(found.address) + port
}
