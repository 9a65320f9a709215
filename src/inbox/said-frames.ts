import type { SocketFrame } from "../http/sockets"

const MOST_REF_CHARACTERS = 100

/** What a client signs in with. */
export type InboxProof = { token: string } | { ticket: string }

interface Referred {
  /** The client's own word for the frame, which the answer repeats. */
  ref: string | undefined
}

/** What a client of an inbox says, in a form that was checked. `enter` stands for what its request brought. */
export type SaidFrame =
  | { type: "enter"; proof: InboxProof }
  | { type: "auth"; proof: InboxProof; after_seq: number | undefined }
  | { type: "resume"; after_seq: number | undefined }
  | ({ type: "mark"; id: string; as: string } & Referred)
  | ({ type: "refresh"; token: string } & Referred)

/** Undefined for a frame that is none of the protocol (contract 42, section 3). */
export function readFrame({ type, token, after_seq, id, as, ref }: SocketFrame) {
  const place = placeOf(after_seq)
  const referred = refOf(ref)
  if (!place || !referred) return undefined
  if (type === "auth" && isText(token)) return said({ type, proof: { token }, ...place })
  if (type === "resume") return said({ type, ...place })
  if (type === "refresh" && isText(token)) return said({ type, token, ...referred })
  if (type === "mark" && isText(id) && isText(as)) return said({ type, id, as, ...referred })
  return undefined
}

const said = (frame: SaidFrame): SaidFrame => frame

const isText = (value: unknown): value is string => typeof value === "string"

const isPlace = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0

function placeOf(value: unknown): { after_seq: number | undefined } | undefined {
  if (value === undefined || value === null) return { after_seq: undefined }
  return isPlace(value) ? { after_seq: value } : undefined
}

function refOf(value: unknown): Referred | undefined {
  if (value === undefined || value === null) return { ref: undefined }
  return isText(value) && value.length <= MOST_REF_CHARACTERS ? { ref: value } : undefined
}
