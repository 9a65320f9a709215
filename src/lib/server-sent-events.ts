/** One event of a stream: its name, and its lines of data joined by line feeds. */
export interface StreamEvent {
  event: string
  data: string
}

/** Of one event, its line that is not yet whole included. */
const MOST_CHARACTERS = 1_048_576

/**
 * Reads server-sent events (HTML, section 9.2.6) out of bytes that come in pieces of any length. Comments,
 * ids and times to reconnect are passed over, and so is an event that the end of the bytes cuts. Throws
 * RangeError at an event of more than a million characters.
 */
export async function* eventsOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder()
  let line = ""
  let ended_in_cr = false
  let event = ""
  let data: string[] = []
  let kept = 0
  for await (const piece of bytes) {
    let text = decoder.decode(piece, { stream: true })
    if (text === "") continue
    if (ended_in_cr) text = text.replace(/^\n/, "") // the rest of CR LF
    ended_in_cr = text.endsWith("\r")
    const lines = text.split(/\r\n|\r|\n/)
    lines[0] = line + lines[0]
    line = lines.pop() ?? ""
    for (const whole of lines) {
      const [name, value] = fieldOf(whole)
      if (name === "event") event = value
      if (name === "data") {
        data.push(value)
        kept += value.length + 1
      }
      if (whole !== "") continue
      if (data.length > 0) yield { event: event || "message", data: data.join("\n") }
      event = ""
      data = []
      kept = 0
    }
    if (line.length + kept > MOST_CHARACTERS) throw new RangeError("the event is too long")
  }
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(":")
  if (colon < 0) return [line, ""]
  return [line.slice(0, colon), line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1)]
}
