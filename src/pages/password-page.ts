import { ApiError } from "../core/errors"
import { ownerOf, reset } from "../identity/password-recovery"
import type { Store } from "../store/store"
import { html } from "./html"
import { complaint, field, PASSWORD_RULES, smallPage } from "./small-page"

const TITLE = "Choose a new password"

export interface PasswordPageParts {
  store: Store
  base_url: () => string
}

export type PasswordForm = Partial<Record<"new_password", string>>

/** Looking changes nothing. Throws 422 `otp_expired` for a token that is not valid. */
export async function showReset({ store }: PasswordPageParts, token: string): Promise<Response> {
  await ownerOf(store.read, token)
  return resetPage()
}

function resetPage(problem?: ApiError): Response {
  const password = field({
    name: "new_password",
    label: "New password",
    type: "password",
    autocomplete: "new-password",
    hint: PASSWORD_RULES,
  })
  const content = html`
<p>When you save it, all your sessions end.</p>
${complaint(problem?.message)}
<form method="post">
${password}
<button class="go">Save</button>
</form>`
  return smallPage(TITLE, content, problem?.status)
}

export async function resetForm(
  { store, base_url }: PasswordPageParts,
  token: string,
  { new_password = "" }: PasswordForm,
  ip: string,
): Promise<Response> {
  try {
    await reset(store, { token, new_password, ip })
  } catch (error) {
    const is_mendable = error instanceof ApiError && error.code !== "otp_expired"
    if (!is_mendable) throw error
    return resetPage(error)
  }
  const command = `belfry login ${base_url()}`
  const content = html`<p>Sign in with the new password:</p><p><code>${command}</code></p>`
  return smallPage("Your password was changed", content)
}
