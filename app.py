"""Router: passes the list of screens to Streamlit. Each screen draws itself completely.

`streamlit run app.py` finds `app` here, and opens the address once what the first screen needs is in memory
(`pages.ui.serving`); each visitor's session then runs this file as a script.

The start-up hook and the menu stand in `pages.ui.page`, where every screen calls them: until somebody has
opened the root, Streamlit serves a deep link by running the screen's file without this one.
"""

import streamlit as st

if __name__ == "__main__":
    from pages.ui.screens import SCREENS

    st.navigation(
        [
            st.Page(
                screen.file, title=screen.title, default=place == 0
            )  # an icon here would be fetched from the network
            for place, screen in enumerate(SCREENS.values())
        ],
        position="hidden",
    ).run()
else:
    from starlette.middleware import Middleware

    from pages.ui.faults import say_error
    from pages.ui.origins import OwnRequestsOnly
    from pages.ui.serving import check_settings, getting_ready
    from pages.ui.shell import OwnShell

    check_settings()
    app = st.App(
        __file__,
        lifespan=getting_ready,
        middleware=[Middleware(OwnRequestsOnly), Middleware(OwnShell)],
        on_script_error=say_error,
    )
