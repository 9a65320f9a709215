/**
 * The client of a vendor, without its types: a check of all types would take minutes for the million that these
 * clients declare.
 */
export const vendorClient = (name: string) => import.meta.require(name)
