"""Router: pass the list of screens to Streamlit. Each screen draws itself completely.

`streamlit run app.py` imports `app` from here, and the server starts to listen once the first screen's imports are
loaded (`pages.ui.serving`). Each session then runs this file as a script.

Every screen calls the start-up hook and the menu in `pages.ui.page` itself. Streamlit serves a deep link by running the
screen's file without this one until someone opens the root.
"""

import streamlit as st

if __name__ == "__main__":
    from pages.ui.screens import SCREENS

    st.navigation(
        [
            st.Page(
                screen.file, title=screen.title, default=place == 0
            )  # an icon here would be loaded from the network
            for place, screen in enumerate(SCREENS.values())
        ],
        position="hidden",
    ).run()
else:
    from starlette.middleware import Middleware

    from pages.ui.faults import say_error
    from pages.ui.origins import OwnRequestsOnly
    from pages.ui.serving import check_settings, lifespan
    from pages.ui.shell import OwnShell

    check_settings()
    app = st.App(
        __file__,
        lifespan=lifespan,
        middleware=[Middleware(OwnRequestsOnly), Middleware(OwnShell)],
        on_script_error=say_error,
    )
