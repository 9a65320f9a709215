const KEPT_CHARACTERS = 4000

/**
 * The first line that a process prints, without its end; undefined where it ends before. The rest is read
 * and forgotten: a pipe that is full would stop the process.
 */
export async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ""
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return undefined
    text += decoder.decode(value, { stream: true })
    const end = text.indexOf("\n")
    if (end < 0) continue
    void drain(reader)
    return text.slice(0, end)
  }
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}

/** Reads what a process prints to its end. Answers how to ask for the last of it. */
export function lastOf(stream: ReadableStream<Uint8Array>): () => string {
  let text = ""
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const part of stream)
      text = (text + decoder.decode(part, { stream: true })).slice(-KEPT_CHARACTERS)
  }
  void read()
  return () => text.trim()
}
