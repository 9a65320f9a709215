/** Migrations are imported as text (`with { type: "text" }`), so that the binary carries them. */
declare module "*.sql" {
  const sql: string
  export default sql
}
