/** One field of a provider's credentials or settings, as the command line asks for it. */
export interface ProviderFormField {
  type: "string" | "integer" | "object" | "array"
  about: string
  /** What help calls its value; the last word of its name without it. */
  value?: string
  /** Answers show only its last four characters. */
  secret?: true
  /** Read from stdin, or asked for, when this other field is given. */
  asked_with?: string
  fallback?: string | number
}

/** A provider that a project may configure. */
export interface ProviderForm {
  name: string
  channel: "email" | "push" | "sms"
  about: string
  /** Flags, as help shows them. */
  example?: string
  fields: Readonly<Record<string, ProviderFormField>>
  /** Those that only some providers have. */
  settings?: Readonly<Record<string, ProviderFormField>>
}
