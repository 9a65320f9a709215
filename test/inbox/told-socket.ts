import type { FollowedInbox, FollowingSocket } from "../../src/inbox/inbox-hub"
import type { Frame } from "../harness/socket"
import { numbers } from "./inbox-dial"

/** A socket that keeps what it is told. */
export function toldSocket() {
  const frames: Frame[] = []
  const closed: string[] = []
  const socket: FollowingSocket & { is_live: boolean } = {
    origin: null,
    is_live: false,
    inbox: undefined as FollowedInbox | undefined,
    push: (texts) => void frames.push(...texts.map((text) => JSON.parse(text) as Frame)),
    close: (why) => void closed.push(why),
  }
  return Object.assign(socket, { frames, closed, numbers: () => numbers({ frames }) })
}
