import { SMTPStream } from "smtp-server/lib/smtp-stream.js"
import { nextTurn } from "../core/time"
import { type ByteFault, LineMender } from "./line-mender"

const CR = 13
const LF = 10

/**
 * Reads commands and messages from the socket. Every byte passes the mender before it counts as a
 * command or as a part of a message.
 */
export class CheckedStream extends SMTPStream {
  onFault: (fault: ByteFault) => void = () => {}
  onMailByte: () => void = () => {}
  readonly #mender: LineMender
  #fault: ByteFault | undefined
  #in_turn = 0
  #mail: { collector: MailCollector; received: () => Promise<void> } | undefined

  /** `of` names the kind of client: programs that submit, or other servers. */
  constructor(
    options?: ConstructorParameters<typeof SMTPStream>[0],
    of: "programs" | "servers" = "programs",
  ) {
    super(options)
    this.#mender = new LineMender(of)
  }

  /** A fault waits behind what came before it, so that replies keep their order. */
  override write(chunk: unknown): boolean {
    if (this.isClosed || this.#fault) return true
    const read = this.#mender.feed(chunk as Buffer)
    if (typeof read !== "string") return read.length === 0 || super.write(read)
    this.#fault = read
    return super.write(FAULT)
  }

  override _write(chunk: Buffer, encoding: BufferEncoding | "buffer", next: () => void) {
    if (chunk !== FAULT) return super._write(chunk, encoding, next)
    if (this.#fault && !this.isClosed) this.onFault(this.#fault)
    next()
  }

  /** From here until the single dot everything belongs to the message. */
  startMail(collector: MailCollector, received: () => Promise<void>): void {
    this._dataMode = true
    this.#mail = { collector, received }
  }

  override _feedDataStream(chunk: Buffer, next: (error?: Error) => void) {
    const mail = this.#mail
    this.onMailByte()
    const rest = this.isClosed ? undefined : mail?.collector.feed(chunk)
    if (!mail || rest === undefined) return this.#goOn(chunk.length, next)
    this._dataMode = false
    this._remainder = ""
    this.#mail = undefined
    mail.received().then(() => this._write(rest, "buffer", next), next)
  }

  /** After `MOST_IN_TURN` bytes of a mail, other connections get a turn. In that time this socket is not read. */
  #goOn(bytes: number, next: () => void) {
    this.#in_turn += bytes
    if (this.#in_turn < MOST_IN_TURN) return next()
    this.#in_turn = 0
    nextTurn().then(next)
  }
}

/** Checking and copying 1 MB takes 2 ms. */
const MOST_IN_TURN = 1024 * 1024

/** Stands in the queue where a fault was found. */
const FAULT = Buffer.from("!")

/** Memory that mails take while they are received. */
export interface MailRoom {
  hasRoom(bytes: number): boolean
  /** Whether there was room; then it is taken. */
  take(bytes: number): boolean
  give(bytes: number): void
}

/** How many bytes all mails that are being received may take together, and those of one client. */
export class MailMemory implements MailRoom {
  readonly #most: number
  readonly #most_of_client: number
  readonly #by_client = new Map<string, number>()
  #used = 0

  constructor(most: number, most_of_client = most) {
    this.#most = most
    this.#most_of_client = most_of_client
  }

  get used(): number {
    return this.#used
  }

  hasRoom(bytes: number): boolean {
    return this.#used + bytes <= this.#most
  }

  take(bytes: number): boolean {
    if (!this.hasRoom(bytes)) return false
    this.#used += bytes
    return true
  }

  give(bytes: number): void {
    this.#used -= bytes
  }

  /** The part that one client may use, so that its mails do not keep the mail of others away. */
  roomOf(client: string): MailRoom {
    const usedBy = () => this.#by_client.get(client) ?? 0
    const note = (bytes: number) => {
      const used = usedBy() + bytes
      if (used > 0) this.#by_client.set(client, used)
      else this.#by_client.delete(client)
    }
    const hasRoom = (bytes: number) =>
      usedBy() + bytes <= this.#most_of_client && this.hasRoom(bytes)
    return {
      hasRoom,
      take: (bytes) => {
        const has_room = hasRoom(bytes) && this.take(bytes)
        if (has_room) note(bytes)
        return has_room
      },
      give: (bytes) => {
        this.give(bytes)
        note(-bytes)
      },
    }
  }
}

const LINE_END = Buffer.from("\r\n")
const DOT_AT_LINE_START = "\r\n."
const FIRST_BYTES = 16 * 1024
/** Of a block, and of a copy: that of 25 MB would hold the main thread for up to 40 ms. */
const MOST_AT_ONCE = 512 * 1024

/**
 * Takes what follows the 354 of DATA until the line with the single dot, without the dots that the
 * client doubled (RFC 5321, 4.5.2). It relies on the mender before it: CR and LF come as pairs.
 */
export class MailCollector {
  /** Of the message, also of what was not kept. */
  size = 0
  state: "kept" | "too_large" | "no_memory" = "kept"

  readonly #most: number
  readonly #memory: MailRoom
  #blocks: Buffer[] = []
  /** Bytes of all blocks, and those of the last one that are free. */
  #taken = 0
  #free = 0
  /** A start of CRLF dot CRLF at the end of the last chunk; DATA begins at the start of a line. */
  #held: Buffer = LINE_END
  #is_first = true

  constructor(most: number, memory: MailRoom) {
    this.#most = most
    this.#memory = memory
  }

  /** What came behind the end of the message, or undefined while it has not ended. */
  feed(chunk: Buffer): Buffer | undefined {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk
    let from = 0
    let dot = bytes.indexOf(DOT_AT_LINE_START)
    while (dot !== -1) {
      const behind = dot + 3
      const next = bytes[behind]
      if (next === undefined || (next === CR && behind + 1 === bytes.length)) {
        this.#keep(bytes.subarray(from, dot))
        this.#held = bytes.subarray(dot)
        return undefined
      }
      this.#keep(bytes.subarray(from, dot + 2))
      if (next === CR) return bytes.subarray(behind + 2)
      from = behind // the dot was added by the client
      dot = bytes.indexOf(DOT_AT_LINE_START, behind)
    }
    const held = lineEndOf(bytes.subarray(from))
    this.#keep(bytes.subarray(from, bytes.length - held))
    this.#held = bytes.subarray(bytes.length - held)
    return undefined
  }

  /** The message in memory of its own, where it was kept whole. A large one is copied in several turns. */
  async raw(): Promise<Uint8Array> {
    const raw = new Uint8Array(this.size)
    let from = 0
    let in_turn = 0
    for (const block of this.#blocks) {
      if (in_turn + block.length > MOST_AT_ONCE && in_turn > 0) {
        await nextTurn()
        in_turn = 0
      }
      raw.set(block.subarray(0, this.size - from), from)
      from += block.length
      in_turn += block.length
    }
    return raw
  }

  /** Gives the memory back. The message is of no more use then. */
  release(): void {
    this.#memory.give(this.#taken)
    this.#blocks = []
    this.#taken = 0
    this.#free = 0
  }

  #keep(part: Buffer) {
    const bytes = this.#is_first && part.length > 0 ? part.subarray(LINE_END.length) : part
    if (part.length > 0) this.#is_first = false
    const size = this.size + bytes.length
    if (this.state === "kept" && size > this.#most) this.#drop("too_large")
    if (this.state === "kept" && !this.#append(bytes)) this.#drop("no_memory")
    this.size = size
  }

  #drop(why: "too_large" | "no_memory") {
    this.state = why
    this.release()
  }

  /** False where there is no memory for it. */
  #append(bytes: Buffer): boolean {
    const rest = this.#fill(bytes)
    if (rest.length === 0) return true
    if (!this.#grow(rest.length)) return false
    this.#fill(rest)
    return true
  }

  /** What did not fit into the last block. */
  #fill(bytes: Buffer): Buffer {
    const last = this.#blocks.at(-1)
    if (!last || this.#free === 0) return bytes
    const copied = bytes.copy(last, last.length - this.#free)
    this.#free -= copied
    return bytes.subarray(copied)
  }

  /** A new block, as large as all before it where there is memory for that: nothing is copied again. */
  #grow(needed: number): boolean {
    const usual = Math.min(Math.max(FIRST_BYTES, this.#taken), MOST_AT_ONCE)
    const roomy = Math.max(needed, Math.min(usual, this.#most - this.#taken))
    const wanted = this.#memory.hasRoom(roomy) ? roomy : needed
    if (!this.#memory.take(wanted)) return false
    this.#blocks.push(Buffer.allocUnsafe(wanted))
    this.#taken += wanted
    this.#free = wanted
    return true
  }
}

/** How many bytes at the end may belong to the end of the message: CRLF, CR or none. */
function lineEndOf(bytes: Buffer): number {
  if (bytes.at(-1) === CR) return 1
  return bytes.at(-1) === LF ? 2 : 0
}

const HEAD_END = "\r\n\r\n"
/** Each server writes its line at the top; reading on would hold everybody up for a header of 25 MB. */
const MOST_HEAD_BYTES = 256 * 1024

/** How many servers say in the header that the message passed them (RFC 5321, 4.4). */
export function countReceived(raw: Uint8Array): number {
  const message = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const start = message.subarray(0, MOST_HEAD_BYTES)
  const end = start.indexOf(HEAD_END)
  const head = start.toString("latin1", 0, end === -1 ? start.length : end)
  return head.match(/(?:^|\r\n)received[ \t]*:/gi)?.length ?? 0
}
