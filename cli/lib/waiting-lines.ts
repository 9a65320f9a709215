/** Where lines go. `written` is called once the text has left this process, or never will. */
interface LineSink {
  write(text: string, written: () => void): unknown
}

/**
 * Lines for a reader that may be slow, or not read at all: what waits for it has a limit in bytes. The count is
 * kept here, because `writableLength` of Bun's standard output is always 0.
 */
export class WaitingLines {
  readonly #sink: LineSink
  readonly #most_bytes: number
  #waiting = 0

  constructor(sink: LineSink, most_bytes: number) {
    this.#sink = sink
    this.#most_bytes = most_bytes
  }

  /** So much waits that another line must not be added now. */
  get isFull(): boolean {
    return this.#waiting >= this.#most_bytes
  }

  add(line: string): void {
    const text = `${line}\n`
    const bytes = Buffer.byteLength(text)
    this.#waiting += bytes
    this.#sink.write(text, () => {
      this.#waiting -= bytes
    })
  }
}
