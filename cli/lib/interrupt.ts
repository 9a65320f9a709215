import { exits } from "./errors"
import { isReaderGone } from "./output"

let answer: () => void = () => process.exit(exits.interrupted)

/** Ctrl-C ends every command with 130, until one of them has something to put in order first. */
export function watchInterrupts(): void {
  process.on("SIGINT", () => answer())
}

export function onInterrupt(act: () => void): void {
  answer = act
}

let readerGone: () => void = () => process.exit(exits.done)

/** The reader of a pipe may leave early (`| head`): that ends a command without a complaint. */
export function watchReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    // Every other error is told by the write that met it.
    stream.on("error", (error: Error) => isReaderGone(error) && readerGone())
  }
}

/** A server goes on when the reader of its output has left. */
export function outliveReaders(): void {
  readerGone = () => {}
}
