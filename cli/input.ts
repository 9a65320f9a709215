import { exits, Failure, usage } from "./failure"

let stdin_reader: string | undefined

/** The bytes of a file, or of stdin for `-`, which only one option of a command may take. */
export async function readBytes(path: string, option: string): Promise<Uint8Array> {
  if (path === "-") {
    if (stdin_reader !== undefined) throw usage(`${stdin_reader} and ${option} both read stdin`)
    stdin_reader = option
    return new Uint8Array(await Bun.stdin.arrayBuffer())
  }
  try {
    return new Uint8Array(await Bun.file(path).arrayBuffer())
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : String(error)
    throw new Failure(exits.storage, "unreadable_file", `${option}: ${path} cannot be read.`, {
      details: { path, reason },
    })
  }
}

/** The same as UTF-8 text. Other encodings are refused instead of being sent broken. */
export async function readText(path: string, option: string): Promise<string> {
  const bytes = await readBytes(path, option)
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    throw new Failure(exits.invalid, "invalid_text", `${option}: ${path} is not UTF-8 text.`)
  }
}

/** The same as JSON. */
export async function readJson(path: string, option: string): Promise<unknown> {
  const text = await readText(path, option)
  try {
    return JSON.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const message = `${option}: ${path} is not JSON: ${reason}`
    throw new Failure(exits.invalid, "invalid_json", message)
  }
}
