import type { ProjectSettings } from "./tables"

/** What holds where a project says nothing. */
export const DEFAULTS: ProjectSettings = {
  default_from: null,
  default_reply_to: null,
  sandbox: false,
  allow_subdomains: false,
}

/** Only what was changed is stored. */
export const withDefaults = (stored: Partial<ProjectSettings>): ProjectSettings => ({
  ...DEFAULTS,
  ...stored,
})
