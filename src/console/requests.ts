/** A refusal of the server, or no answer at all (status 0). */
export class RequestError extends Error {
  readonly status: number
  readonly code: string
  readonly details: Record<string, unknown>
  readonly request_id: string | undefined

  constructor(
    status: number,
    code: string,
    message: string,
    details: Record<string, unknown> = {},
    request_id?: string,
  ) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
    this.request_id = request_id
  }
}

/** Of an answer that is no success, from its body as text. */
export function refusalOf(status: number, body: string): RequestError {
  const { error, meta } = parsed(body)
  const message = error?.message ?? `The server answered ${status}. Load the page again.`
  const { code = "bad_answer", details = {} } = error ?? {}
  return new RequestError(status, code, message, details, meta?.request_id)
}

interface ErrorBody {
  error?: { code?: string; message?: string; details?: Record<string, unknown> }
  meta?: { request_id?: string }
}

function parsed(body: string): ErrorBody {
  try {
    return (JSON.parse(body) as ErrorBody | null) ?? {}
  } catch {
    return {}
  }
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

const LONGEST_MILLISECONDS = 30_000

/** A request to this server. Throws RequestError with status 0 where nothing answers. */
export async function reach(path: string, init: RequestInit): Promise<Response> {
  const late = AbortSignal.timeout(LONGEST_MILLISECONDS)
  const signal = init.signal ? AbortSignal.any([late, init.signal]) : late
  try {
    return await fetch(path, {
      credentials: "same-origin",
      redirect: "error",
      ...init,
      signal,
    })
  } catch {
    throw new RequestError(0, "unreachable", "The server does not answer. Is it still running?")
  }
}
