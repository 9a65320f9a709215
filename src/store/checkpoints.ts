import { closeSync, openSync, readSync } from "node:fs"

/**
 * Where the wal-index keeps how many frames the WAL has, and how many of them are in the database
 * file already (https://www.sqlite.org/walformat.html, 2.2), in the byte order of the machine.
 */
const FRAMES_AT = 16
const COPIED_AT = 96
const HEAD_BYTES = 100

/**
 * Only the writer finds a moment in which everything is copied and the WAL can begin anew: that stays
 * as it was, at its own number of pages. A thread that copies each quarter leaves him a quarter.
 */
const STEPS = 4

export interface CheckpointOptions {
  /** Of the database, whose WAL exists. */
  path: string
  /** In the WAL, at which the writer does a checkpoint itself. */
  pages: number
  /** Runs `checkpointFile` in a thread. */
  run: (path: string) => Promise<void>
  onTrouble: (error: unknown) => void
}

/** Lets a thread do most of every checkpoint, so that requests wait for little of it. */
export class Checkpoints {
  readonly #options: CheckpointOptions
  /** Held until the connections are closed: closing it would release their locks (POSIX). */
  readonly #index: number
  readonly #head = new DataView(new ArrayBuffer(HEAD_BYTES))
  #running: Promise<void> | undefined

  constructor(options: CheckpointOptions) {
    this.#options = options
    this.#index = openSync(`${options.path}-shm`, "r")
  }

  /** To be called after a commit: costs one small read, and starts what is due. */
  look() {
    if (this.#running || !this.#isDue()) return
    const { path, run, onTrouble } = this.#options
    this.#running = run(path)
      .catch(onTrouble)
      .finally(() => {
        this.#running = undefined
      })
  }

  /** Resolves when no checkpoint is running. */
  async idle() {
    await this.#running
  }

  /** Only after the connections. */
  close() {
    closeSync(this.#index)
  }

  /** From the writer's own number on it is left to him, or he would find it taken every time. */
  #isDue(): boolean {
    readSync(this.#index, this.#head, 0, HEAD_BYTES, 0)
    const frames = this.#head.getUint32(FRAMES_AT, IS_LITTLE)
    const copied = this.#head.getUint32(COPIED_AT, IS_LITTLE)
    const { pages } = this.#options
    return frames < pages && frames - copied >= pages / STEPS
  }
}

const IS_LITTLE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1
