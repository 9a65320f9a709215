CREATE TABLE "message_files" (
	"message_id" uuid NOT NULL,
	"sha256" text NOT NULL,
	CONSTRAINT "message_files_message_id_sha256_pk" PRIMARY KEY("message_id","sha256")
);
--> statement-breakpoint
CREATE INDEX "message_files_by_name" ON "message_files" USING btree ("sha256");--> statement-breakpoint
INSERT INTO "message_files" ("message_id", "sha256")
	SELECT m."id", file.value->>'sha256' FROM "messages" m, json_array_elements(m."envelope"::json->'attachments') file
	WHERE m."envelope"::json->'submitted' IS NULL
	ON CONFLICT DO NOTHING;
--> statement-breakpoint
INSERT INTO "message_files" ("message_id", "sha256")
	SELECT "id", "envelope"::json->'submitted'->>'sha256' FROM "messages"
	WHERE "envelope"::json->'submitted'->>'sha256' IS NOT NULL
	ON CONFLICT DO NOTHING;
