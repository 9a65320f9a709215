import { and, eq } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import type { CodeOwner } from "../sign-in/codes"
import type { AuthEnvironment } from "./environments"
import { type CodePurpose, userCodes } from "./tables"

export const CODE_SECONDS = 600

/** Of an environment, one code works for each purpose and address: a new one takes the place of the old one. */
export const codesOf = (secrets: Secrets): CodeOwner<typeof userCodes> => ({
  secrets,
  table: userCodes,
  place: (codes) => [codes.environment_id, codes.identifier, codes.purpose],
})

/** The place of a code. The identifier is an address in the form in which addresses compare, or a number. */
export const codeAt = (
  { id, project_id }: AuthEnvironment,
  { purpose, identifier }: { purpose: CodePurpose; identifier: string },
) =>
  and(
    eq(userCodes.project_id, project_id),
    eq(userCodes.environment_id, id),
    eq(userCodes.purpose, purpose),
    eq(userCodes.identifier, identifier),
  )

/** What is kept of a code beside the code itself. */
export const codeRow = (
  { id, project_id }: AuthEnvironment,
  place: { purpose: CodePurpose; identifier: string },
  about: { user_id: string | null; message_id: string | null },
) => ({ project_id, environment_id: id, ...place, ...about })
