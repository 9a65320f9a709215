import type { Context } from "./context"

/** Tells people, and nobody else, when the way to the server breaks and when it is mended. */
export function tellLink({ output, paint }: Context): (state: "open" | "lost") => void {
  let was_lost = false
  return (state) => {
    if (state === "lost") {
      was_lost = true
      void output.note(paint.yellow("The connection is lost. Connecting again …"))
    } else if (was_lost) {
      was_lost = false
      void output.note(paint.green("Connected again. No event was missed."))
    }
  }
}
