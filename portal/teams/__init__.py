"""Users, teams, memberships, roles, API tokens, and the one table of what each role may do."""
