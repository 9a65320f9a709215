CREATE TABLE "subscriber_postings" (
	"project_id" uuid NOT NULL,
	"term" text COLLATE "C" NOT NULL,
	"first" bigint NOT NULL,
	"numbers" "bytea" NOT NULL,
	CONSTRAINT "subscriber_postings_project_id_term_first_pk" PRIMARY KEY("project_id","term","first")
);
