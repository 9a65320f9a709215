import { wait } from "./clock"
import { bearerToken, project, session } from "./page-session"

const PATH = "/v1/events/stream"
const PROTOCOL = "svc.events.v1"
const FIRST_PAUSE = 500
const LONGEST_PAUSE = 15_000

/** However much happens: a page asks for what it shows, and only has to know that something happened. */
const NEWEST_EVERY_MS = 500

interface FollowOptions {
  /** Event types, separated by commas. */
  types: string
  /** Something happened: one event, or many. */
  onEvent: () => void
  onState: (state: "live" | "lost") => void
}

/** Follows the events of the project until the function is called. A lost connection is opened again. */
export function followEvents(options: FollowOptions): () => void {
  const stop = new AbortController()
  void followAll(options, stop.signal)
  return () => stop.abort()
}

async function followAll(options: FollowOptions, stopped: AbortSignal): Promise<void> {
  let tries = 0
  while (!stopped.aborted) {
    const was_open = await followOnce(options, stopped)
    if (stopped.aborted) return
    options.onState("lost")
    tries = was_open ? 0 : tries + 1
    await wait(pauseOf(tries))
  }
}

/** Exponential with jitter, so that pages of one server do not return together. */
function pauseOf(tries: number): number {
  const longest = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** tries)
  return longest / 2 + (Math.random() * longest) / 2
}

/** Resolves when the connection is over, with whether it was open. */
async function followOnce(
  { types, onEvent, onState }: FollowOptions,
  stopped: AbortSignal,
): Promise<boolean> {
  const address = await addressOf(types).catch(() => undefined)
  if (!address || stopped.aborted) return false
  return new Promise((resolve) => {
    let was_open = false
    const socket = new WebSocket(address.url, address.protocols)
    // Browsers report an error where a connection is closed before it is open: that one is closed later.
    const close = () => {
      if (socket.readyState === WebSocket.OPEN) socket.close(1000)
    }
    stopped.addEventListener("abort", close, { once: true })
    socket.onopen = () => {
      if (stopped.aborted) return close()
      was_open = true
      onState("live")
    }
    socket.onmessage = ({ data }) => {
      if (!stopped.aborted && String(data).startsWith('{"type":"event"')) onEvent()
    }
    socket.onclose = () => {
      stopped.removeEventListener("abort", close)
      resolve(was_open)
    }
  })
}

/** It begins with what is new: the list is loaded when the connection is open. */
async function addressOf(types: string) {
  const token = await bearerToken()
  if (token === undefined) return undefined
  const search = new URLSearchParams({ types, newest_every_ms: String(NEWEST_EVERY_MS) })
  const is_person = session.value.kind === "token" && session.value.user !== null
  if (is_person && project.value) {
    search.set("project_id", project.value.id)
    search.set("account_id", project.value.account_id)
  }
  const url = `${location.origin.replace(/^http/, "ws")}${PATH}?${search}`
  return { url, protocols: [PROTOCOL, `bearer.${token}`] }
}
