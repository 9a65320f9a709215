/** Of one event, its line that is not yet whole included. */
const MOST_CHARACTERS = 1_048_576

/** A line of data, and what stands in it. */
const DATA = /^data(?:: ?|$)(.*)/s

/**
 * The data of each of the server-sent events (HTML, section 9.2.6) in bytes that come in pieces of any length. All else
 * is passed over, and so is an event that the end of the bytes cuts. Throws RangeError at an event of more
 * than a million characters.
 */
export async function* eventData(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let line = ""
  let ended_in_cr = false
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
      const value = DATA.exec(whole)?.[1]
      if (value !== undefined) {
        data.push(value)
        kept += value.length + 1
      }
      if (whole !== "") continue
      if (data.length > 0) yield data.join("\n")
      data = []
      kept = 0
    }
    if (line.length + kept > MOST_CHARACTERS) throw new RangeError("the event is too long")
  }
}
