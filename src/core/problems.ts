import { ApiError, type ErrorCode } from "./errors"

export interface Problem {
  /** Dot form: `to.email`, `messages.3.subject`. */
  path: string
  code: string
  message: string
}

/** A problem that, when it is the only one, answers with a code of its own. */
const OWN_CODES: Record<string, ErrorCode> = {
  required: "missing_required_field",
  invalid_email: "invalid_email",
  invalid_phone_number: "invalid_phone_number",
  invalid_url: "invalid_url",
  invalid_template: "invalid_template",
}

const MOST_PROBLEMS = 50
/** Names of fields may be the caller's own, as long as the body: an answer says each one thrice. */
const LONGEST_PATH = 200

/** Collects everything that is wrong with a request, so that one answer names it all. */
export class Problems {
  readonly list: Problem[] = []
  readonly #prefix: string

  constructor(prefix = "") {
    this.#prefix = prefix
  }

  /** The first complaint about a path is the useful one. Returns undefined, for a reader to return. */
  add(path: string, code: string, message: string): undefined {
    const whole = (this.#prefix + path).slice(0, LONGEST_PATH).toWellFormed()
    const is_known = this.list.some((one) => one.path === whole)
    if (this.list.length < MOST_PROBLEMS && !is_known)
      this.list.push({ path: whole, code, message })
  }

  get any(): boolean {
    return this.list.length > 0
  }

  throwIfAny() {
    if (this.any) throw problemError(this.list)
  }
}

/** One problem with its own code answers with that; everything else is a `validation_error`. */
export function problemError(list: Problem[]): ApiError {
  const [only] = list
  const own = list.length === 1 && only ? OWN_CODES[only.code] : undefined
  if (only && own) {
    return new ApiError(own, `${only.path}: ${only.message}`, {
      field: only.path,
      reason: only.message,
    })
  }
  const told = list.map(({ path, message }) => `${path}: ${message}`).slice(0, 3)
  return new ApiError("validation_error", told.join(" "), { fields: list })
}

/** One problem. `more` goes into the details of the error. */
export const invalid = (path: string, code: string, message: string, more?: object): ApiError => {
  const error = problemError([{ path, code, message }])
  Object.assign(error.details, more)
  return error
}
