// The reader’s page.
